// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/verify.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "python/src/module.h"
#include "python/src/pickling.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "python/src/watch.h"

namespace sealpoint::python {
namespace {

VerifyLevel LevelNamed(const std::string& name) {
  for (const VerifyLevel level :
       {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
    if (VerifyLevelName(level) == name) return level;
  }
  throw StatusError(
      Status(Code::kInvalidArgument, "level is " + name + ", expected files, structure or full"));
}

VerifyReport VerifyPath(nb::handle path, const std::string& level, int threads, bool direct_io,
                        std::uint64_t violations_per_file_max, std::uint64_t raise_limits,
                        nb::handle progress) {
  const std::string directory = PathOf(path);
  Watch watch(progress);
  const VerifyOptions options{.level = LevelNamed(level),
                              .threads = threads,
                              .direct_io = direct_io,
                              .limits = RaisedLimits(raise_limits),
                              .on_progress = watch.OnPhase(),
                              .violations_per_file_max = violations_per_file_max};
  return Value(watch.Run([&] { return Verify(directory, options); }));
}

nb::list Violations(const VerifyReport& report) {
  nb::list errors;
  for (const Status& violation : report.violations) errors.append(ErrorOf(violation));
  return errors;
}

nb::list Omitted(const VerifyReport& report) {
  nb::list result;
  for (const OmittedViolations& omitted : report.omitted) {
    result.append(nb::make_tuple(Text(omitted.path), omitted.count));
  }
  return result;
}

nb::list Notes(const VerifyReport& report) {
  nb::list notes;
  for (const std::string& note : report.notes) notes.append(Text(note));
  return notes;
}

void BindReport(nb::class_<VerifyReport>& type) {
  using Self = const VerifyReport&;
  type.def_prop_ro(
          "path", [](Self self) { return Text(self.path); }, nb::sig("def path(self) -> str"))
      .def_prop_ro(
          "verdict", [](Self self) { return std::string(VerdictName(self.verdict)); },
          "Verdict: committed, uncommitted, incomplete, corrupt, unsupported or unreadable.")
      .def_prop_ro(
          "ok", [](Self self) { return self.verdict == Verdict::kCommitted; },
          "True if the verdict is committed, that is, the checkpoint is valid at this level.")
      .def_prop_ro("level", [](Self self) { return std::string(VerifyLevelName(self.level)); })
      .def_prop_ro("violations", Violations, nb::sig("def violations(self) -> list[Exception]"),
                   "Errors in the order marker, index, blobs, offsets. They are not raised.")
      .def_prop_ro("omitted", Omitted, nb::sig("def omitted(self) -> list[tuple[str, int]]"),
                   "(path, count) of violations that are counted but not listed.")
      .def_ro("violation_count", &VerifyReport::violation_count, "Listed and omitted.")
      .def_prop_ro("notes", Notes, nb::sig("def notes(self) -> list[str]"),
                   "Leftovers and foreign names, which do not affect the verdict.")
      .def_ro("leftover_bytes", &VerifyReport::leftover_bytes)
      .def_prop_ro(
          "attempt", [](Self self) { return HexOrNone(self.attempt); },
          nb::sig("def attempt(self) -> str | None"),
          "Id of the attempt, or None if the marker is damaged.")
      .def_prop_ro(
          "step", [](Self self) { return StepOrNone(self.step); },
          nb::sig("def step(self) -> int | None"))
      .def_ro("sequence", &VerifyReport::sequence)
      .def_ro("tensor_count", &VerifyReport::tensor_count)
      .def_ro("object_count", &VerifyReport::object_count)
      .def_ro("blob_count", &VerifyReport::blob_count)
      .def_ro("chunk_count", &VerifyReport::chunk_count)
      .def_ro("bytes_checked", &VerifyReport::bytes_checked)
      .def_ro("seconds", &VerifyReport::seconds)
      .def("__repr__", [](Self self) {
        return Text("<sealpoint.VerifyReport " + self.path + ": " +
                    std::string(VerdictName(self.verdict)) + " at level " +
                    std::string(VerifyLevelName(self.level)) + ", " +
                    std::to_string(self.violation_count) + " violations>");
      });
}

}  // namespace

void BindVerify(nb::module_& m) {
  nb::class_<VerifyReport> report(m, "VerifyReport", "What a verification found.");
  BindReport(report);
  MakePicklable(report);
  m.def("verify", VerifyPath, nb::arg("path"), nb::arg("level"), nb::arg("threads"),
        nb::arg("direct_io"), nb::arg("violations_per_file_max"), nb::arg("raise_limits"),
        nb::arg("progress").none());
}

}  // namespace sealpoint::python
