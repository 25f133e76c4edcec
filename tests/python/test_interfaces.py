# SPDX-License-Identifier: Apache-2.0
"""The list of interfaces of frameworks, against the pinned versions; and that what moves is said by its name."""

import pathlib
import sysconfig

import interfaces
import pytest
import ranks

FOLDERS = sorted(ranks.PACKAGES.glob("*"))
LISTED = interfaces.listed(interfaces.LIST.read_text())


@pytest.mark.parametrize("folder", [*FOLDERS, pathlib.Path(sysconfig.get_paths()["purelib"])], ids=lambda folder: folder.name)
def test_the_list_fits_what_is_installed(folder):
    _, moved = interfaces.problems(folder)
    assert moved == []


def test_each_line_is_compared():
    """With one of the pinned versions; those of vLLM are with scripts/frameworks.sh alone, and torch may be missing."""
    if not FOLDERS or ranks.NEWEST:
        pytest.skip(f"{ranks.PACKAGES} does not have the pinned ones: see scripts/python_env.sh")
    there = {(name, version) for folder in FOLDERS for name, version in interfaces.packages_in(folder)}
    packages = {name for name, _ in there}
    unused = [str(one) for one in LISTED if one.package in packages
              and not any(name == one.package and one.versions.contains(version) for name, version in there)]
    assert unused == []


def test_what_moved_is_named(tmp_path):
    (tmp_path / "fake_thing-2.0.dist-info").mkdir()
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/module.py").write_text(
        "try:\n    from x import gone_elsewhere\nexcept ImportError:\n    VALUE = 1\n"
        "class A:\n    def same(self, a, *, b=1): ...\n    def more(self, a, b, c): ...\n    def freer(self, a, b=1, **c): ...\n"
        "    def less(self): self.given = 1\n    class Config: ...\n")
    lines = """
fake-thing fake.module A.same(self, a, b)
fake-thing fake.module A.more(self, a, ...)
fake-thing fake.module A.freer(self, a, ...)
fake-thing fake.module A.less(self, a)
fake-thing fake.module A.none(self)
fake-thing fake.module A.Config(self)
fake-thing fake.module A.Config
fake-thing fake.module VALUE
fake-thing fake.module A.given
fake-thing fake.module gone_elsewhere
fake-thing <2 fake.module A.never
fake-thing fake.other A
"""
    count, moved = interfaces.problems(tmp_path, interfaces.listed(lines))
    assert count == 11
    assert moved == [
        "fake-thing 2.0: fake.module.A.more: signature changed from (self, a, ...) to (self, a, b, c)",
        "fake-thing 2.0: fake.module.A.less: signature changed from (self, a) to (self)",
        "fake-thing 2.0: fake.module.A.none: missing",
        "fake-thing 2.0: fake.module.A.Config: is no function any more",
        "fake-thing 2.0: fake.other: no such module",
    ]
