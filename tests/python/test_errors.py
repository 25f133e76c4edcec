# SPDX-License-Identifier: Apache-2.0
"""Exceptions: classes, attributes, text, and what is left of them in another process."""

import pathlib
import pickle
import subprocess
import sys

import pytest
import sealpoint

CLASSES = sealpoint.Error.__subclasses__()
PLACE = dict(rule="R-HDR-05", path="a/b\udcff.blob", offset=2**63, tensor="w", rank=3, host="node7", unknown_outcome=True)


def test_every_code_has_a_class():
    source = (pathlib.Path(__file__).parents[2] / "include/sealpoint/status.h").read_text()
    codes = [line.strip()[1:].split(" ")[0] for line in source.splitlines() if line.startswith("  k") and " = " in line]
    assert sorted(codes) == sorted(["Ok"] + [cls.code for cls in CLASSES])
    assert all(getattr(sealpoint, cls.__name__) is cls and cls.__name__ == cls.code + "Error" for cls in CLASSES)


@pytest.mark.parametrize("cls", CLASSES)
def test_pickle_keeps_everything(cls):
    error = cls("digest is 1, expected 2", **PLACE)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls and vars(again) == vars(error) and again.args == error.args
    assert str(again) == str(error)


def test_text_is_that_of_the_library():
    error = sealpoint.CorruptError("header digest differs", rule="R-HDR-05", path="c/x.blob", offset=40, tensor="w")
    assert str(error) == "Corrupt: header digest differs [rule R-HDR-05, tensor w, file c/x.blob, offset 40]"


def test_classes_are_those_of_python_too():
    assert issubclass(sealpoint.NotFoundError, KeyError)
    assert issubclass(sealpoint.InvalidArgumentError, ValueError)
    assert issubclass(sealpoint.TimeoutError, TimeoutError)


def test_import_takes_neither_numpy_nor_torch():
    code = "import sys, sealpoint; print([m for m in ('numpy', 'torch', 'ml_dtypes') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
