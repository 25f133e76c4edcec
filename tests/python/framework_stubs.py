# SPDX-License-Identifier: Apache-2.0
"""Stands in for packages that a framework imports, and that the tests do not need: modules whose names are all there."""

import importlib.machinery
import sys
import types

import torch
import torch.utils.flop_counter  # looks for triton itself, and is to find none


class Nothing(types.ModuleType):
    __path__ = ()
    __version__ = "3.0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].isupper():
            return type(name, (), {"__class_getitem__": classmethod(lambda cls, key: cls)})
        return Nothing(f"{self.__name__}.{name}")

    def __call__(self, *args, **kwargs):
        return args[0] if args and callable(args[0]) else lambda function: function


class _Finder:
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        is_one = name.split(".")[0] in self.names
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_one else None

    def create_module(self, spec):
        return Nothing(spec.name)

    def exec_module(self, module):
        pass


def install(*names):
    """Behind all others: packages that are there are found. Nothing is compiled: importing what does it takes seconds."""
    torch.compile = lambda model=None, **_: (lambda function: function) if model is None else model
    sys.meta_path.append(_Finder(names))
