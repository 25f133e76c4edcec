# SPDX-License-Identifier: Apache-2.0
"""s3fs with servers of S3, one that obeys conditions and one that ignores them; and the client of the Hugging Face Hub."""
import os
import pathlib
import sys

import fsspec_cases
import pytest
import sealpoint
from object_stores import StorePath, running, servers
from sealpoint import storage

FRAMEWORKS = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks")
sys.path[:] = [str(FRAMEWORKS / "s3fs"), *sys.path, str(FRAMEWORKS / "huggingface")]
pytest.importorskip("fsspec")
from sealpoint.storage.fsspec import FsspecStore  # noqa: E402


def place_in(server, name):
    s3fs = pytest.importorskip("s3fs")
    keys = {"key": servers.KEYS["AWS_ACCESS_KEY_ID"], "secret": servers.KEYS["AWS_SECRET_ACCESS_KEY"]}
    fs = s3fs.S3FileSystem(**keys, endpoint_url=server.address, skip_instance_cache=True)
    storage.register("fsspec+s3", lambda uri: FsspecStore(fs, uri=uri, part_size_bytes=5 << 20))
    return fs, StorePath(f"fsspec+s3://bucket/{name}")


@pytest.fixture(scope="module")
def server():
    with running(servers.seaweedfs) as begun:
        yield begun


def test_a_series(server):
    fsspec_cases.check_series(place_in(server, "series")[1])


def test_commands_and_copies(server, tmp_path):
    fsspec_cases.check_commands(place_in(server, "commands")[1], tmp_path)


def test_an_upload_that_is_given_up_leaves_no_parts(server):
    fs, _ = place_in(server, "uploads")
    upload = FsspecStore(fs, uri="x://bucket", part_size_bytes=5 << 20).start_upload("k")
    upload.append(bytes(5 << 20))
    assert len(fs.list_multipart_uploads("bucket")) == 1
    upload.abort()
    assert fs.list_multipart_uploads("bucket") == [] and not fs.exists("bucket/k")


def test_a_bucket_that_does_not_exist_is_no_empty_one(server):
    place_in(server, "")
    with pytest.raises(sealpoint.IoError, match="the bucket cannot be listed"):
        sealpoint.Series("fsspec+s3://another/run").newest()


def test_a_server_that_ignores_conditions_is_refused():
    with running(servers.rclone) as server:
        fs, place = place_in(server, "c")
        with pytest.raises(sealpoint.UnsupportedError, match="S3FileSystem of fsspec replaces an object"):
            sealpoint.save(fsspec_cases.state(8), place)
        fs.invalidate_cache()
        assert fs.find("bucket") == []


class Hub:
    """The few calls of HfApi that HfFileSystem makes for buckets. ``files``: content by path, in the one bucket."""

    def __init__(self):
        self.files = {}

    def bucket_info(self, bucket):
        assert bucket == "me/bucket"

    def list_bucket_tree(self, bucket, prefix=None, recursive=False):
        file = pytest.importorskip("huggingface_hub").BucketFile
        return [file(type="file", path=path, size=len(content), xetHash="", mtime=None) for path, content in self.files.items()
                if path.startswith(prefix or "")]  # fmt: skip

    def get_bucket_paths_info(self, bucket, paths):
        return [entry for entry in self.list_bucket_tree(bucket) if entry.path in paths]

    def batch_bucket_files(self, bucket, add=(), delete=()):
        self.files.update((path, pathlib.Path(source).read_bytes()) for source, path in add)
        for path in delete:
            del self.files[path]


def test_a_bucket_of_the_hub_is_refused_for_saves_and_loads(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    if not hasattr(hub.HfApi, "batch_bucket_files"):
        pytest.skip("this huggingface_hub has no buckets")
    fs, bucket = hub.HfFileSystem(skip_instance_cache=True), "buckets/me/bucket"
    fs._api = api = Hub()

    def cat_file(_, path, start=None, end=None):
        if path.removeprefix(bucket + "/") not in api.files:
            raise FileNotFoundError(path)
        return api.files[path.removeprefix(bucket + "/")][start:end]

    monkeypatch.setattr(hub.HfFileSystem, "cat_file", cat_file)
    storage.register("fsspec+hf", lambda uri: FsspecStore(fs, uri=uri, root=bucket))
    with pytest.raises(sealpoint.UnsupportedError, match="HfFileSystem of fsspec replaces an object .* if a different client"):
        sealpoint.save(fsspec_cases.state(8), "fsspec+hf://bucket/c")
    assert api.files == {}
    sealpoint.save(fsspec_cases.state(8), tmp_path / "c")
    api.files.update((f"c/{path.name}", path.read_bytes()) for path in (tmp_path / "c").iterdir())
    with sealpoint.open("fsspec+hf://bucket/c") as checkpoint:
        assert checkpoint["w"].tobytes() == fsspec_cases.state(8)["w"].tobytes()
    assert sealpoint.verify("fsspec+hf://bucket/c").ok
