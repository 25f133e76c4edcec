# SPDX-License-Identifier: Apache-2.0
"""Paths of an object store, with what cases use of pathlib.Path, so that they run in both places."""

import os

from sealpoint import _sealpoint, _uri
from sealpoint._url_files import UrlPath


class RemotePath(UrlPath):
    @property
    def parent(self):
        return RemotePath(_uri.split(str(self))[0])

    def _place(self):
        from sealpoint._arguments import path_of

        return _uri.split(path_of(self))

    def read_bytes(self):
        folder, name = self._place()
        return _sealpoint.read_file(folder, name, _uri.sizes_of(folder)[name])

    def read_text(self):
        return self.read_bytes().decode()

    def write_bytes(self, content):
        _sealpoint.write_file(*self._place(), content)

    def write_text(self, text):
        self.write_bytes(text.encode())

    def unlink(self):
        folder, name = self._place()
        _sealpoint.remove_files(folder, [name])

    def touch(self):
        self.write_bytes(b"")

    def mkdir(self, **_):
        pass


def names(path):
    """What os.listdir() says, of either place. SeaweedFS still lists a folder after its last object went."""
    found = _uri.list_names(os.fspath(path))
    is_url = _uri.is_uri(os.fspath(path))
    return [one for one in found if not is_url or UrlPath(os.fspath(path)).joinpath(one).exists()]


def copy(source, destination):
    destination.write_bytes(source.read_bytes())
