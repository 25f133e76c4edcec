// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/series.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/pickling.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "python/src/watch.h"

namespace sealpoint::python {
namespace {

using FoundEntries = std::vector<SeriesEntry>;
using PerPeriod = std::vector<std::pair<std::int64_t, std::uint32_t>>;  // (seconds, count)
// (metric, "least" or "greatest", count)
using Best = std::optional<std::tuple<std::string, std::string, std::uint32_t>>;

template <typename Work>
auto Unlocked(Work work) {
  const GilRelease released;
  return work();
}

FoundEntries List(nb::handle path) {
  const Series series(PathOf(path));
  return Unlocked([&] { return Value(series.List()).entries; });
}

// The newest and what was passed over; nothing if none was ever committed.
std::optional<std::pair<SeriesEntry, FoundEntries>> Newest(nb::handle path, bool allow_fallback,
                                                           bool require_checked) {
  const Series series(PathOf(path));
  const ResumeOptions options{.allow_fallback = allow_fallback, .require_checked = require_checked};
  auto point = Unlocked([&] { return series.Newest(options); });
  // This code says so, and nothing else.
  if (!point.ok() && point.error().code() == Code::kNotFound) return std::nullopt;
  ResumePoint found = Value(std::move(point));
  return std::pair(std::move(found.entry), std::move(found.skipped));
}

void Delete(nb::handle path, const std::string& name) {
  const Series series(PathOf(path));
  Unlocked([&] { Check(series.Delete(name)); });
}

// (name, upload id, when it was begun)
using Unfinished = std::tuple<std::string, std::string, std::uint64_t>;

std::vector<Unfinished> TuplesOf(const std::vector<UnfinishedFile>& files) {
  std::vector<Unfinished> out;
  for (const UnfinishedFile& file : files) {
    out.emplace_back(file.name, file.upload_id, file.begun_unix_s);
  }
  return out;
}

nb::object ErrorOrNone(const Status& status) { return status.ok() ? nb::none() : ErrorOf(status); }

nb::tuple Clean(nb::handle path, const std::string& name) {
  const Series series(PathOf(path));
  const CleanUpReport report = Unlocked([&] { return Value(series.RemoveUncommitted(name)); });
  return nb::make_tuple(report.bytes_freed, TuplesOf(report.aborted), ErrorOrNone(report.uploads));
}

std::vector<Unfinished> ListUnfinished(nb::handle path) {
  const Series series(PathOf(path));
  return Unlocked([&] { return TuplesOf(Value(series.ListUnfinished())); });
}

// (keep_last, keep_every_n_steps, keep_within in seconds, max_bytes, keep_checked)
using Bounds = std::tuple<std::uint32_t, std::uint64_t, std::int64_t, std::uint64_t, std::uint32_t>;

RetentionPolicy PolicyOf(const Bounds& bounds, const PerPeriod& per_period, const Best& best) {
  RetentionPolicy policy{.keep_last = std::get<0>(bounds),
                         .keep_every_n_steps = std::get<1>(bounds),
                         .keep_checked = std::get<4>(bounds),
                         .keep_within = std::chrono::seconds(std::get<2>(bounds)),
                         .max_bytes = std::get<3>(bounds)};
  for (const auto& [seconds, count] : per_period) {
    policy.keep_per_period.push_back({.period = std::chrono::seconds(seconds), .count = count});
  }
  if (best) {
    const auto& [metric, which, count] = *best;
    if (which != "least" && which != "greatest") {
      throw StatusError(Status(Code::kInvalidArgument, "the best value of " + metric + " is " +
                                                           which + ", expected least or greatest"));
    }
    policy.keep_best = {.metric = metric,
                        .best = which == "least" ? BestMetric::kLeast : BestMetric::kGreatest,
                        .count = count};
  }
  return policy;
}

PruneReport Prune(nb::handle path, const Bounds& bounds, const PerPeriod& keep_per_period,
                  const Best& keep_best, bool dry_run) {
  const Series series(PathOf(path));
  const RetentionPolicy policy = PolicyOf(bounds, keep_per_period, keep_best);
  return Unlocked([&] { return series.Prune(policy, {.dry_run = dry_run}); });
}

void BindEntry(nb::module_& m) {
  using Self = const SeriesEntry&;
  nb::class_<SeriesEntry> type(m, "SeriesEntry", "One entry of a series.");
  MakePicklable(type);
  type.def_prop_ro(
          "name", [](Self self) { return Text(self.name); }, nb::sig("def name(self) -> str"))
      .def_prop_ro(
          "path", [](Self self) { return Text(self.path); }, nb::sig("def path(self) -> str"))
      .def_prop_ro(
          "verdict", [](Self self) { return std::string(VerdictName(self.verdict)); },
          "Verdict by the marker alone: committed, uncommitted, corrupt, unsupported or "
          "unreadable.")
      .def_prop_ro(
          "problem", [](Self self) { return ErrorOrNone(self.problem); },
          nb::sig("def problem(self) -> Exception | None"),
          "Reason why it is not committed, or None.")
      .def_ro("is_void", &SeriesEntry::is_void)
      .def_ro("is_link", &SeriesEntry::is_link, "A symbolic link.")
      .def_ro("is_kept", &SeriesEntry::is_kept, "True if a KEEP file pins it.")
      .def_ro("is_base", &SeriesEntry::is_base,
              "True if a saver made its KEEP file, for deltas of the series.")
      .def_ro("is_delta", &SeriesEntry::is_delta,
              "True if it is stored as changes to another checkpoint.")
      .def_prop_ro(
          "attempt", [](Self self) { return HexOrNone(self.attempt); },
          nb::sig("def attempt(self) -> str | None"))
      .def_prop_ro(
          "parent", [](Self self) { return HexOrNone(self.parent); },
          nb::sig("def parent(self) -> str | None"))
      .def_ro("sequence", &SeriesEntry::sequence)
      .def_prop_ro(
          "step", [](Self self) { return StepOrNone(self.step); },
          nb::sig("def step(self) -> int | None"))
      .def_ro("size_bytes", &SeriesEntry::size_bytes)
      .def("__repr__", [](Self self) {
        return Text("<sealpoint.SeriesEntry " + self.name + ": " +
                    std::string(VerdictName(self.verdict)) + ">");
      });
}

void BindPrune(nb::module_& m) {
  nb::class_<PruneDecision> decision(m, "PruneDecision",
                                     "Decision on one checkpoint, with the reasons.");
  MakePicklable(decision);
  decision.def_ro("entry", &PruneDecision::entry)
      .def_ro("keep", &PruneDecision::keep)
      .def_ro("reasons", &PruneDecision::reasons,
              "Rules that keep it, or the reason why no rule does.")
      .def_ro("is_deleted", &PruneDecision::is_deleted, "True if it was deleted durably.")
      .def("__repr__", [](const PruneDecision& self) {
        return Text("<sealpoint.PruneDecision " + self.entry.name +
                    (self.keep ? ": stays>" : ": goes>"));
      });
  nb::class_<PruneReport> report(m, "PruneReport", "What a pruning did.");
  MakePicklable(report);
  report
      .def_prop_ro(
          "error", [](const PruneReport& self) { return ErrorOrNone(self.status); },
          nb::sig("def error(self) -> Exception | None"),
          "Error that stopped the deletions, or None.")
      .def_ro("decisions", &PruneReport::decisions)
      .def_ro("bytes_freed", &PruneReport::bytes_freed, "In a dry run: the checkpoints to delete.")
      .def("__repr__", [](const PruneReport& self) {
        return "<sealpoint.PruneReport: " + std::to_string(self.decisions.size()) +
               " directories, " + std::to_string(self.bytes_freed) + " bytes freed>";
      });
}

}  // namespace

void BindSeries(nb::module_& m) {
  BindEntry(m);
  BindPrune(m);
  m.def("series_list", List, nb::arg("path"));
  m.def("series_newest", Newest, nb::arg("path"), nb::arg("allow_fallback"),
        nb::arg("require_checked"));
  m.def("series_delete", Delete, nb::arg("path"), nb::arg("name"));
  m.def("series_clean", Clean, nb::arg("path"), nb::arg("name"),
        nb::sig("def series_clean(path: object, name: str)"
                " -> tuple[int, list[tuple[str, str, int]], Exception | None]"));
  m.def("series_unfinished", ListUnfinished, nb::arg("path"));
  m.def("series_prune", Prune, nb::arg("path"), nb::arg("bounds"), nb::arg("keep_per_period"),
        nb::arg("keep_best").none(), nb::arg("dry_run"));
}

}  // namespace sealpoint::python
