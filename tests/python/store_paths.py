# SPDX-License-Identifier: Apache-2.0
"""Paths of an object store, with what cases use of pathlib.Path, so that they run in both places."""

import os

from sealpoint import _paths, _sealpoint
from sealpoint._url_files import UrlPath


class RemotePath(UrlPath):
    @property
    def parent(self):
        return RemotePath(_paths.split(str(self))[0])

    def read_bytes(self):
        return _sealpoint.read_file(self, 1 << 40)

    def read_text(self):
        return self.read_bytes().decode()

    def write_bytes(self, content):
        _sealpoint.write_file(self, content)

    def write_text(self, text):
        self.write_bytes(text.encode())

    def unlink(self):
        _sealpoint.remove_path(self)

    def touch(self):
        self.write_bytes(b"")

    def mkdir(self, **_):
        pass


def names(path):
    """What os.listdir() says, of either place. SeaweedFS still lists a folder after its last object went."""
    found = _paths.list_names(os.fspath(path))
    is_url = not _paths.is_local(os.fspath(path))
    return [item for item in found if not is_url or UrlPath(os.fspath(path)).joinpath(item).exists()]


def copy(source, destination):
    destination.write_bytes(source.read_bytes())
