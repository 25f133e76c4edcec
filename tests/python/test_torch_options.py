# SPDX-License-Identifier: Apache-2.0
"""The options of saves and loads: keywords of each face, checked at once, and the same in all of them."""

import dataclasses
import inspect

import pytest

pytest.importorskip("torch", reason="torch is not installed")
import sealpoint.torch as sp  # noqa: E402
from sealpoint.torch import _options  # noqa: E402
from sealpoint.torch.dcp import StorageReader, StorageWriter  # noqa: E402

FACES = [
    (sp.save, _options.SaveKeywords, _options.SaveOptions),
    (sp.save_async, _options.SaveAsyncKeywords, _options.SaveOptions),
    (sp.load, _options.LoadKeywords, _options.LoadOptions),
    (StorageWriter, _options.WriterKeywords, _options.SaveOptions),
    (StorageReader, _options.ReaderKeywords, _options.LoadOptions),
    (sp.Checkpointer, _options.CheckpointerKeywords, _options.SaveOptions),
    (sp.Checkpointer.resume, _options.ResumeKeywords, _options.LoadOptions),
]


@pytest.mark.parametrize(("face", "keywords", "options"), FACES)
def test_keywords_are_fields_of_the_options(face, keywords, options):
    types = {field.name: field.type for field in dataclasses.fields(options)}
    for name, annotation in keywords.__annotations__.items():
        assert types[name] == annotation.__forward_arg__, name
    assert getattr(options(), "__dataclass_params__").frozen


@pytest.mark.parametrize(("face", "keywords", "options"), FACES[:3])
def test_help_lists_the_keywords_with_their_defaults(face, keywords, options):
    shown = inspect.signature(face).parameters
    assert list(shown)[:2] == ["state_dict", "path"] and set(shown) == {"state_dict", "path", *keywords.__annotations__}
    assert all(shown[name].default == getattr(options(), name) for name in keywords.__annotations__)
    assert all(name in face.__doc__ for name in keywords.__annotations__ if face is sp.save)


@pytest.mark.parametrize(("call", "words"), [
    (lambda path: sp.save({}, path, setp=1), r"save\(\) has no option 'setp', expected one of .*; the nearest is 'step'"),
    (lambda path: sp.save({}, path, background_deadline=1), r"save\(\) has no option 'background_deadline'"),
    (lambda path: sp.save_async({}, path, writer_rank=[0]), r"save_async\(\) .*; the nearest is 'writer_ranks'"),
    (lambda path: sp.load({}, path, thread=2), r"load\(\) has no option 'thread', .*; the nearest is 'threads'"),
    (lambda path: sp.load({}, path, pass_on=True), r"load\(\) has no option 'pass_on': it is named 'share_chunks' now"),
    (lambda path: StorageReader(path, pass_on=True), "StorageReader .* 'pass_on': it is named 'share_chunks' now"),
    (lambda path: StorageReader(path, thread=2), "StorageReader has no option 'thread', .*; the nearest is 'threads'"),
    (lambda path: StorageWriter(path, through_cordinator=True), "StorageWriter .*; the nearest is 'through_coordinator'"),
    (lambda path: StorageWriter(path, series=True), "StorageWriter has no option 'series', expected one of codec, "),
    (lambda path: sp.Checkpointer(path, keep_last=3), "Checkpointer has no option 'keep_last': it is named keep here"),
    (lambda path: sp.Checkpointer(path, evry=3), "Checkpointer has no option 'evry', .*; the nearest is 'every'"),
    (lambda path: sp.save({}), r"save\(\): missing a required argument: 'path'"),
])  # fmt: skip
def test_an_unknown_option_is_refused_by_name(tmp_path, call, words):
    with pytest.raises(TypeError, match=words):
        call(tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_deadline_below_a_millisecond_is_a_deadline(tmp_path):
    """The library counts milliseconds, and refuses 0."""
    sp.save({"n": 1}, tmp_path / "c", deadline=1e-4)  # alone: no exchange to wait for


def test_options_of_a_writer_are_pickled():
    import pickle

    writer = pickle.loads(pickle.dumps(StorageWriter("c", step=7, codec="zstd", provenance={"a": "b"})))
    assert (writer._options.step, writer._options.codec, writer._options.provenance) == (7, "zstd", {"a": "b"})
