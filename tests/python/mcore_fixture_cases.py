# SPDX-License-Identifier: Apache-2.0
"""What Megatron wrote, through Sealpoint and back, on the four ranks that wrote it; run by test_megatron_fixtures.py."""

import importlib.util
import io
import json
import pathlib
import tarfile

import mcore_shim

mcore_shim.install()

import sealpoint.megatron  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing as dc  # noqa: E402
from megatron.core.dist_checkpointing import ShardedObject, ShardedTensor  # noqa: E402
from megatron.core.dist_checkpointing.validation import StrictHandling  # noqa: E402
from sealpoint.interop import convert  # noqa: E402

sealpoint.megatron.enable()
FIXTURES = pathlib.Path(__file__).parent / "fixtures"
VERSIONS = ("0.16.1", "0.19.2")

_spec = importlib.util.spec_from_file_location("make_fixtures", FIXTURES / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


def emptied(value):
    """A state to load into: other numbers, and no objects."""
    if isinstance(value, dict):
        kinds = (dict, list, ShardedTensor, ShardedObject)
        return {key: emptied(item) for key, item in value.items() if isinstance(item, kinds)}
    if isinstance(value, list):
        return [emptied(item) for item in value]
    value.data = torch.full_like(value.data, -1) if isinstance(value, ShardedTensor) else None
    return value


def content(value):
    if isinstance(value, (ShardedTensor, ShardedObject)):
        return content(value.data)
    if isinstance(value, dict):
        return {key: content(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(content, value))
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    return [str(value.dtype), value.tolist()] if isinstance(value, torch.Tensor) else value


def check(rank, path):
    """That a load finds all, and nothing else."""
    expected = make.megatron_state(rank)
    loaded, missing, unexpected = dc.load(emptied(make.megatron_state(rank)), str(path), strict=StrictHandling.RETURN_ALL)
    assert (missing, unexpected) == (set(), set())
    found, wanted = content(loaded), content(expected)
    assert found.keys() >= wanted.keys(), (path, found.keys())
    for key in wanted:
        assert found[key] == wanted[key], (path, key, found[key], wanted[key])


def convert_on_one(job, source, target, **options):
    if job.rank == 0:
        convert(source, target, **options)
    dist.barrier()


def case_fixtures_through_sealpoint_and_back(job):
    for version in VERSIONS:
        source, middle, back = job.path(f"megatron_{version}"), job.path(f"sealpoint-{version}"), job.path(f"back-{version}")
        if job.rank == 0:
            with tarfile.open(FIXTURES / f"megatron_{version}.tar.gz") as archive:
                archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
                archive.extractall(job.folder)
        convert_on_one(job, source, middle, verify=True)
        convert_on_one(job, middle, back, to="megatron", verify=True)
        assert json.loads((middle / "metadata.json").read_text())["sharded_backend"] == "sealpoint"
        assert not list(middle.glob("*.distcp")) and not list(back.glob("*.blob"))
        check(job.rank, middle)
        check(job.rank, back)
        keys = [set(dc.load_tensors_metadata(str(path))) for path in (source, middle, back)]
        assert keys[0] == keys[1] == keys[2] and len(keys[0]) == 4


def case_what_was_loaded_is_saved_and_exported(job):
    """What is saved through Sealpoint and exported, Megatron loads, with weights_only: members of enumerations, too."""
    saved, exported = job.path("saved"), job.path("exported")
    if job.rank == 0:
        saved.mkdir()
    dist.barrier()
    dc.save(make.megatron_state(job.rank), str(saved))
    assert json.loads((saved / "metadata.json").read_text())["sharded_backend"] == "sealpoint"
    convert_on_one(job, saved, exported, to="megatron", verify=True)
    check(job.rank, exported)
