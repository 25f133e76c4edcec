#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation at a time in a small tree and expects check_edges.py to name it."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check_edges.py")
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
TABLE = """base:
storage: base
format: base schema
comm: base
writer: base format storage
include/sealpoint status.h base
include/sealpoint communicator.h comm
include/sealpoint mpi_communicator.h comm
"""


class CheckEdgesTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sealpoint-edges-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.write("cmake/module_edges.txt", TABLE)
        self.write("python/module_edges.txt", "low (a):\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("//", "#", 1) if name.endswith(".py") and text.startswith(SPDX) else text)

    def check(self):
        done = subprocess.run([sys.executable, str(CHECK), "--root", str(self.root)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode != 0, not done.stdout.endswith("\n0 violations\n")
                         and done.stdout != "0 violations\n")
        return done.stdout

    def expect_clean(self, name, body):
        self.write(name, SPDX + body)
        self.assertIn("0 violations", self.check())

    def expect(self, name, body, message):
        self.write(name, SPDX + body)
        output = self.check()
        self.assertIn(message, output)
        self.assertIn("1 violations", output)

    def test_allowed_edges_pass(self):
        self.write("include/sealpoint/status.h", SPDX)
        self.expect_clean("lib/writer/a.cc", '#include <vector>\n#include "sealpoint/status.h"\n'
                                             '#include "lib/format/f.h"\n#include "lib/writer/a.h"\n')

    def expect_python(self, modules, *messages):
        """``modules``: bodies by name, in the rooms low and high."""
        self.write("python/module_edges.txt", "low (_a _b .):\nhigh (torch/): low\n")
        for name in ("__init__", "_a", "_b", "torch/__init__", *modules):
            self.write(f"python/sealpoint/{name}.py", SPDX + modules.get(name, ""))
        output = self.check()
        for message in messages:
            self.assertIn(message, output)
        self.assertIn(f"{len(messages)} violations", output)

    def test_python_imports_downward(self):
        self.expect_python({"torch/_c": "from sealpoint import _a, _sealpoint\nimport sealpoint._b\nimport os\n",
                            "_a": "from sealpoint._sealpoint import x\nfrom sealpoint._b import y\n"})

    def test_python_imports_upward(self):
        self.expect_python({"_a": "def f():\n    from sealpoint.torch import _c\n", "torch/_c": ""},
                           "python/sealpoint/_a.py:3: low may not import high (sealpoint.torch._c)")

    def test_python_imports_in_a_circle(self):
        self.expect_python({"_a": "from sealpoint import _b\n", "_b": "def f():\n    from sealpoint._a import x\n"},
                           "modules import each other in a circle: sealpoint._a -> sealpoint._b -> sealpoint._a")

    def test_python_module_without_a_room(self):
        self.expect_python({"_d": ""}, "python/sealpoint/_d.py:1: no room in python/module_edges.txt")

    def test_python_rooms_of_no_module(self):
        self.expect_python({})
        self.write("python/module_edges.txt", "low (_a _b _e .): high\nhigh (torch/): low\n")
        output = self.check()
        self.assertIn("no module is named _e", output)
        self.assertIn("low names high, which does not stand above it", output)

    def test_internal_type_in_a_public_header(self):
        self.expect("include/sealpoint/status.h", "namespace internal { struct Parts; }\n",
                    "include/sealpoint/status.h:2: a public header names the namespace internal")

    def test_namespace_of_another_module(self):
        self.write("lib/format/a.cc", SPDX + "namespace sealpoint::internal::format {\n")
        self.expect("lib/writer/a.cc", "namespace sealpoint::internal {\n",
                    "lib/writer/a.cc:2: the module's namespace is internal::writer")

    def test_generated_schema_passes_in_format(self):
        self.expect_clean("lib/format/a.cc", '#include "schema/index_generated.h"\n')

    def test_generated_schema_elsewhere(self):
        self.expect("lib/writer/a.cc", '#include "schema/index_generated.h"\n',
                    "lib/writer/a.cc:2: writer may not include schema")

    def test_forbidden_module(self):
        self.expect("lib/base/a.cc", '#include "lib/storage/s.h"\n',
                    "lib/base/a.cc:2: base may not include storage")

    def test_forbidden_public_header(self):
        self.expect("lib/writer/a.cc", '#include "sealpoint/communicator.h"\n',
                    "writer may not include comm")

    def test_public_header_of_a_higher_module(self):
        self.expect("include/sealpoint/status.h", '#include "sealpoint/communicator.h"\n',
                    "base may not include comm")

    def test_public_header_with_private_include(self):
        self.expect("include/sealpoint/status.h", '#include "lib/base/b.h"\n',
                    "a public header includes public headers only")

    def test_public_header_without_owner(self):
        self.expect("include/sealpoint/new.h", "", "include/sealpoint/new.h:1: no owner")

    def test_unknown_public_header(self):
        self.expect("lib/writer/a.cc", '#include "sealpoint/new.h"\n', "sealpoint/new.h has no owner")

    def test_program_with_private_include(self):
        self.expect("tools/t/main.cc", '#include "lib/base/b.h"\n',
                    "tools/t/main.cc:2: a program uses include/sealpoint only")

    def test_guard_that_aborts_at_the_end_of_the_interpreter(self):
        self.expect("python/src/a.cc", "void F() { nb::gil_scoped_release released; }\n",
                    "python/src/a.cc:2: 'gil_scoped_release': it aborts at the end of the interpreter")

    def test_face_with_private_include(self):
        self.write("cmake/module_edges.txt", TABLE.replace("include/", "c: base writer\ninclude/", 1))
        self.expect("lib/c/a.cc", '#include "lib/writer/a.h"\n#include "lib/c/b.h"\n', "c includes public headers only")

    def test_python_package_that_looks_inside(self):
        self.write("python/src/a.cc", SPDX + '#include "python/src/status.h"\n#include "sealpoint/status.h"\n')
        self.write("include/sealpoint/status.h", SPDX)
        self.expect("python/src/b.cc", '#include "lib/base/b.h"\n',
                    "python/src/b.cc:2: a program uses include/sealpoint only")

    def test_library_with_test_include(self):
        self.expect("lib/base/a.cc", '#include "tests/support/x.h"\n', "does not include tests/")

    def test_cycle_in_the_table(self):
        self.write("cmake/module_edges.txt", "base: comm\ncomm: base\n")
        self.assertIn("base names comm", self.check())

    def test_mpi_header_in_the_library(self):
        self.expect("lib/comm/a.cc", "#include <mpi.h>\n", "<mpi.h> may not be included here")

    def test_mpi_passes_in_the_adapter(self):
        self.expect_clean("include/sealpoint/mpi_communicator.h",
                          "#include <mpi.h>\nint F() { return MPI_Barrier(MPI_COMM_WORLD); }\n")

    def test_mpi_call_in_the_library(self):
        self.expect("lib/comm/a.cc", "int x = MPI_Barrier(c);\n", "only the adapter knows MPI")

    def test_cuda_header_in_a_public_header(self):
        self.expect("include/sealpoint/status.h", "#include <cuda_runtime.h>\n",
                    "<cuda_runtime.h> may not be included here")

    def test_rename_even_in_the_storage(self):
        self.expect("lib/storage/a.cc", "int x = std::rename(a, b);\n", "rename replaces silently")

    def test_posix_fallocate_even_in_the_storage(self):
        self.expect("lib/storage/a.cc", "int x = posix_fallocate(f, 0, 1);\n", "use fallocate")

    def test_calls_of_python_on_names(self):
        for body in ("import os\nos.replace('a', 'b')\n", "from os import unlink\n", "import shutil\nf = shutil.rmtree\n",
                     "def f(path):\n    path.rename('b')\n"):
            self.expect("python/sealpoint/a.py", body, "files are the storage's affair")
        self.expect_clean("python/sealpoint/a.py", "import os\nx = 'os.link(a, b)'.replace('a', os.sep)\n")
        self.write("python/module_edges.txt", "low (a):\nbench (bench/):\n")
        self.expect_clean("python/sealpoint/bench/_disk.py", "import os\nos.fsync(1)\n")

    def test_fsync_outside_the_storage(self):
        self.expect("lib/writer/a.cc", "int x = ::fsync(f);\n", "durability is the storage's affair")

    def test_link_outside_the_storage(self):
        self.expect("lib/writer/a.cc", "int x = linkat(a, b, c, d, 0);\n", "publishing is the storage's")

    def test_the_storage_may_sync_and_link(self):
        self.expect_clean("lib/storage/a.cc", "int x = fsync(f) + link(a, b) + unlink(a);\n")

    def test_words_in_comments_and_strings_pass(self):
        self.expect_clean("lib/writer/a.cc", "// fsync( is elsewhere\nauto s = \"rename(\"; /* throw\n"
                                             "*/ auto r = R\"(MPI_Send)\"; char c = '\"'; int n = 1'000;\n")

    def test_throw(self):
        self.expect("lib/container/a.cc", "void F() { throw 1; }\n", "return a Status")

    def test_exported_friend(self):
        self.expect("include/sealpoint/status.h", "class A { SEALPOINT_EXPORT friend bool F(const A& a); };\n",
                    "the attribute of a friend is ignored")

    def test_missing_licence_line(self):
        self.write("lib/base/a.cc", "int x;\n")
        self.assertIn("the first line is not the SPDX line", self.check())

    def test_unfinished_work(self):
        self.expect("tests/unit/a.cc", "// TO" "DO: later\n", "unfinished work")

    def test_text_that_says_only_what_a_thing_is_not(self):
        self.expect("lib/base/a.cc", 'auto s = "header is no JSON";\n', "lib/base/a.cc:2: 'is no JSON': say what was found")

    def test_text_of_python_that_says_only_what_a_thing_is_not(self):
        self.expect("python/sealpoint/a.py", 'b = f"{a} is no size"\n',
                    "python/sealpoint/a.py:2: 'is no size': say what was found")

    def test_docstrings_pass(self):
        self.expect_clean("python/sealpoint/a.py", 'def f():\n    """What is no tensor."""\n')

    def test_other_texts_pass(self):
        self.expect_clean("lib/base/a.cc", '// is no JSON\nauto s = "there is no marker"; auto t = "it is no longer there";\n')

    def test_comment_that_begins_with_of(self):
        self.expect("lib/base/a.cc", "int x;  // Of a file.\n", "lib/base/a.cc:2: a comment begins with \"Of\"")

    def test_docstring_that_begins_with_of(self):
        self.expect("python/sealpoint/a.py", 'def f():\n    """Of a file."""\n', "python/sealpoint/a.py:3: a comment begins with")

    def test_other_comments_pass(self):
        self.expect_clean("lib/base/a.cc", "int x;  // of a file\n// Offset.\nauto s = \"// Of\";\n")

    def test_long_file(self):
        self.expect("lib/base/a.cc", "\n" * 1000, "1001 lines, at most 1000")

    def test_long_line_of_python(self):
        self.expect_clean("tests/python/a.py", "a = " + "1" * 128 + "\n")
        self.expect("tests/python/a.py", "a = " + "1" * 129 + "\n", "tests/python/a.py:2: 133 columns, at most 132")

    @unittest.skipUnless(shutil.which("ctags"), "no ctags")
    def test_long_function(self):
        self.expect("lib/base/a.cc", "int F() {\n" + "  G();\n" * 70 + "}\n", "F has 72 lines")


if __name__ == "__main__":
    unittest.main()
