#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the search for protective steps, and of the lists that name them."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import find_steps  # noqa: E402
import generate  # noqa: E402
import mutants  # noqa: E402
import programs  # noqa: E402
from source_text import Source  # noqa: E402

PATH = pathlib.Path("lib/format/sample.cc")


def found_in(body, returns="Status"):
    source = Source("namespace sealpoint {\n" + returns + " Foo::Check(const Bar& bar) {\n" + body + "\n}\n}\n")
    sites = find_steps.Finder(source).find()
    names = generate.name_sites(PATH, source, sites)
    return [(names[site], source.masked[site.begin:site.end]) for site in sites if site.kind != "note"], \
        generate.insert(source, sites, names)


def names_in(body, returns="Status"):
    return [name.removeprefix("format/sample:Foo::Check:") for name, _ in found_in(body, returns)[0]]


class SourcesTest(unittest.TestCase):
    def test_folders_within_a_module_are_searched(self):
        found = {path.as_posix() for path in generate.sources()}
        self.assertLessEqual({"lib/format/marker.cc", "lib/interop/foreign/pickle.cc"}, found)


class StepsTest(unittest.TestCase):
    def test_each_operand_of_a_guard_is_a_mutant(self):
        body = '  if (bar.a != 1 || bar.b == 2) {\n    return RuleError(kCode, "R-ABC-01", "why");\n  }'
        self.assertEqual([text for _, text in found_in(body)[0]], ["bar.a != 1", "bar.b == 2"])
        self.assertEqual(names_in(body), ["R-ABC-01:1", "R-ABC-01:2"])

    def test_a_guard_is_named_by_the_constant_of_its_rule(self):
        body = '  constexpr std::string_view kRule = "R-ABC-02";\n  if (bar.bad) return input.Corrupt(kRule, "why");'
        self.assertEqual(names_in(body), ["R-ABC-02:1"])

    def test_a_bound_gives_a_second_mutant(self):
        self.assertEqual(names_in('  if (bar.size > kMax) return InvalidArgument("why");'), ["guard:1", "guard:1:edge"])

    def test_a_condition_that_declares_what_it_looks_at_is_none(self):
        for gap in (" ", "\n            "):
            self.assertEqual(names_in(f'  if (auto bar ={gap}Get()) return *bar;\n  return Status(kCode, "why");'), [])

    def test_template_arguments_are_no_comparison(self):
        self.assertEqual(names_in('  if (Load<int>(bar) != 1) return InvalidArgument("why");'), ["guard:1"])

    def test_success_in_front_of_an_error_gives_one_mutant_per_operand(self):
        body = '  if (bar.a && bar.b == 1) return {};\n  return RuleError(kCode, "R-ABC-03", "why");'
        self.assertEqual(names_in(body), ["R-ABC-03:1", "R-ABC-03:2"])

    def test_success_that_no_error_follows_is_none(self):
        self.assertEqual(names_in("  if (bar.empty()) return {};\n  bar.Go();\n  return {};"), [])

    def test_a_step_that_reaches_the_storage_has_two_mutants(self):
        self.assertEqual(names_in("  SEALPOINT_RETURN_IF_ERROR(file->Sync());"), ["Sync:1", "Sync:1:ignored"])
        self.assertEqual(names_in("  return file->Close();"), ["Close:1", "Close:1:ignored"])
        self.assertEqual(names_in("  const Status synced = directory.Sync();"), ["Sync:1", "Sync:1:ignored"])

    def test_a_check_that_is_only_called_is_a_step(self):
        self.assertEqual(names_in("  CheckPadding(1, 2);", "void"), ["CheckPadding:1"])

    def test_an_error_that_is_reported_counts_as_one_that_is_returned(self):
        body = '  if (bar.bad) {\n    ReportAt(1, Code::kCorrupt, "R-ABC-04", "why");\n  }'
        self.assertEqual(names_in(body, "void"), ["R-ABC-04:1"])

    def test_the_operands_behind_a_flag_are_mutants(self):
        body = "  const bool holds = bar.a && bar.b;\n  if (!holds) return InvalidArgument(\"why\");"
        self.assertEqual(names_in(body), ["guard:1", "guard:2", "guard:3"])

    def test_comments_and_texts_are_not_code(self):
        self.assertEqual(names_in('  // if (x) return Error();\n  Log("if (x) return Error();");'), [])

    def test_what_is_written_around_a_step_keeps_its_text(self):
        _, text = found_in('  if (bar.bad) return InvalidArgument("why");')
        self.assertIn('if ((!SEALPOINT_MUTANT_IS_OUT("format/sample:Foo::Check:guard:1") && (bar.bad)', text)


class ListsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = generate.generate()

    def test_every_entry_of_the_catalogue_applies_and_names_are_unique(self):
        catalogue = [mutant for mutant in self.all if mutant.kind == "catalogue"]
        self.assertEqual(len(catalogue), len(generate.read_catalogue()))
        self.assertEqual(len(catalogue), (generate.HERE / "catalogue.txt").read_text().count("\n== "))

    def test_every_equivalent_mutant_exists_and_has_a_reason(self):
        names = {mutant.name for mutant in self.all}
        for name, reason in mutants.read_equivalent().items():
            self.assertTrue(name in names, f"{name} is no mutant any more")
            self.assertGreater(len(reason), 20)

    def test_the_quick_part_holds_every_sync_of_the_commit(self):
        quick = {mutant.name for mutant in self.all if mutants.is_quick(mutant)}
        self.assertIn("writer/commit_steps:WriteIndexAndMarker:Sync:1", quick)
        self.assertIn("storage/durable:PublishDurably:Sync:1", quick)
        self.assertIn("load/chunk_reader:CheckStored:R-CHK-02:2", quick)


class ProgramTest(unittest.TestCase):
    def test_the_exit_status_comes_with_the_time_of_the_processor_and_none_means_too_long(self):
        statuses = [programs.Program("unit.a", pathlib.Path("/usr/bin") / name, [], {}).run([programs.WHOLE], 20.0)[0]
                    for name in ("true", "false")]
        self.assertEqual(statuses, [0, 1])
        status, seconds = programs.Program("unit.a", pathlib.Path("/usr/bin/yes"), [], {}).run([programs.WHOLE], 0.5)
        self.assertIsNone(status)
        self.assertGreater(seconds, 0)


if __name__ == "__main__":
    unittest.main()
