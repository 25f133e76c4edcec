// SPDX-License-Identifier: Apache-2.0
//
// What saves, plans and reads report.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "python/src/module.h"
#include "python/src/pickling.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "sealpoint/commit.h"
#include "sealpoint/read_plan.h"

namespace sealpoint::python {
namespace {

using Phases = std::vector<std::tuple<std::string, double, std::uint64_t>>;

Phases PhasesOf(const PhaseReport& report) {
  Phases phases;
  for (const PhaseTime& phase : report.phases) {
    phases.emplace_back(PhaseName(phase.phase), phase.seconds, phase.bytes);
  }
  return phases;
}

constexpr const char* kPhasesDoc =
    "Phases of the save in this process, in order: (phase, seconds, bytes).";

void BindCommitInfo(nb::module_& m) {
  nb::class_<CommitInfo> type(m, "CommitInfo", "A committed, durable checkpoint.");
  MakePicklable(type);
  type.def_prop_ro(
          "directory", [](const CommitInfo& info) { return Text(info.directory); },
          nb::sig("def directory(self) -> str"), "Directory of the checkpoint.")
      .def_prop_ro(
          "attempt", [](const CommitInfo& info) { return info.attempt.ToHex(); },
          "Id of the attempt, 32 hexadecimal digits.")
      .def_prop_ro(
          "parent", [](const CommitInfo& info) { return HexOrNone(info.parent); },
          nb::sig("def parent(self) -> str | None"), "Id of the preceding checkpoint, or None.")
      .def_ro("sequence", &CommitInfo::sequence,
              "Position in the series: the sequence of the parent plus 1.")
      .def_prop_ro(
          "step", [](const CommitInfo& info) { return StepOrNone(info.step); },
          nb::sig("def step(self) -> int | None"), "Training step, or None.")
      .def_ro("blob_count", &CommitInfo::blob_count)
      .def_ro("tensor_count", &CommitInfo::tensor_count)
      .def_ro("raw_bytes", &CommitInfo::raw_bytes,
              "Total size of tensors and objects in bytes, before encoding.")
      .def_ro("total_bytes", &CommitInfo::total_bytes, "Total size of the blobs in bytes.")
      .def_ro("index_bytes", &CommitInfo::index_bytes)
      .def_ro("reused_bytes", &CommitInfo::reused_bytes,
              "Total size in bytes of the blobs shared with an older checkpoint.")
      .def_prop_ro(
          "phases", [](const CommitInfo& info) { return PhasesOf(info.report); }, kPhasesDoc)
      .def("__repr__", [](const CommitInfo& info) {
        return Text("<sealpoint.CommitInfo " + info.directory + ": " +
                    std::to_string(info.tensor_count) + " tensors, " +
                    std::to_string(info.raw_bytes) + " bytes>");
      });
}

void BindPlanSummary(nb::module_& m) {
  nb::class_<PlanSummary> type(m, "PlanSummary", "Cost of a read. Sizes are in bytes.");
  MakePicklable(type);
  type.def_ro("items", &PlanSummary::items, "Number of tensors or parts of tensors.")
      .def_ro("bytes_requested", &PlanSummary::bytes_requested, "Delivered to destinations.")
      .def_ro("bytes_read", &PlanSummary::bytes_read, "Bytes read from stored chunks.")
      .def_ro("table_bytes_read", &PlanSummary::table_bytes_read, "Bytes read from chunk records.")
      .def_ro("files", &PlanSummary::files, "Count.")
      .def_ro("requests", &PlanSummary::requests, "Count of ranges.")
      .def_ro("chunks", &PlanSummary::chunks, "Count.")
      .def_ro("amplification", &PlanSummary::amplification, "bytes_read / bytes_requested, or 0.")
      .def("__str__", &PlanSummary::ToString)
      .def("__repr__", [](const PlanSummary& plan) {
        return "<sealpoint.PlanSummary " + plan.ToString() + ">";
      });
}

const char* KindName(LoadFinding::Kind kind) {
  switch (kind) {
    case LoadFinding::Kind::kMissing:
      return "missing";
    case LoadFinding::Kind::kUnexpected:
      return "unexpected";
    case LoadFinding::Kind::kDType:
      return "dtype";
    case LoadFinding::Kind::kShape:
      return "shape";
    case LoadFinding::Kind::kCoverage:
      return "coverage";
  }
  return "unknown";
}

void BindLoadReport(nb::module_& m) {
  nb::class_<LoadReport> type(m, "LoadReport", "What a read did.");
  MakePicklable(type);
  type.def_ro("plan", &LoadReport::plan, "What it cost.")
      .def_prop_ro(
          "findings", [](const LoadReport& report) { return FindingsOf(report.findings); },
          "Findings that the contract reports: (kind, tensor, detail).")
      .def_ro("bytes_verified_on_device", &LoadReport::bytes_verified_on_device)
      .def_prop_ro(
          "phases", [](const LoadReport& report) { return PhasesOf(report.phases); }, kPhasesDoc)
      .def_prop_ro("seconds",
                   [](const LoadReport& report) { return report.phases.total_seconds(); })
      .def("__repr__", [](const LoadReport& report) {
        return "<sealpoint.LoadReport " + report.plan.ToString() + ">";
      });
}

}  // namespace

Findings FindingsOf(const std::vector<LoadFinding>& findings) {
  Findings result;
  for (const LoadFinding& finding : findings) {
    result.emplace_back(KindName(finding.kind), finding.tensor, finding.detail);
  }
  return result;
}

void BindReports(nb::module_& m) {
  BindCommitInfo(m);
  BindPlanSummary(m);
  BindLoadReport(m);
}

}  // namespace sealpoint::python
