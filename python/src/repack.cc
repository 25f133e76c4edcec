// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/repack.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "python/src/watch.h"

// Copies, merges, repairs: sealpoint/_repack.py makes the reports of these tuples.

namespace sealpoint::python {
namespace {

using Strings = std::vector<std::string>;

// (codec, codec_level, chunk_size_bytes, blob_count, blob_size_max_bytes, threads,
// memory_budget_bytes, dry_run)
using Form = std::tuple<std::optional<std::string>, int, std::uint64_t, std::uint32_t,
                        std::uint64_t, int, std::uint64_t, bool>;

RepackOptions OptionsOf(const Form& form, Watch& watch) {
  const auto& [codec, level, chunk_size, blob_count, blob_size_max, threads, memory, is_dry] = form;
  RepackOptions options{.codec_level = level,
                        .chunk_size_bytes = chunk_size,
                        .blob_count = blob_count,
                        .blob_size_max_bytes = blob_size_max,
                        .threads = threads,
                        .memory_budget_bytes = memory,
                        .on_progress = watch.OnPhase(),
                        .dry_run = is_dry};
  if (codec) options.codec = CodecOf(*codec);
  return options;
}

nb::tuple TupleOf(const RepackReport& report) {
  return nb::make_tuple(report.attempt.ToHex(), report.sequence, StepOrNone(report.step),
                        report.tensor_count, report.object_count, report.blob_count,
                        report.raw_bytes, report.total_bytes, report.is_identical,
                        report.was_committed);
}

nb::tuple Copy(nb::handle from, nb::handle to, const Strings& match, const Strings& drop,
               bool flatten, const Form& form, nb::handle progress) {
  const std::string source = PathOf(from);
  const std::string target = PathOf(to);
  Watch watch(progress);
  const CopyOptions options{
      .match = match, .drop = drop, .flatten = flatten, .repack = OptionsOf(form, watch)};
  return TupleOf(
      Value(watch.Run([&] { return CopyCheckpoint({.from = source, .to = target}, options); })));
}

// `average`: (weights, in f64).
nb::tuple Merge(const Strings& sources, nb::handle to,
                const std::optional<std::pair<std::vector<double>, bool>>& average,
                bool first_objects, const std::optional<std::uint64_t>& step,
                const ProvenanceList& provenance, const Form& form, nb::handle progress) {
  const std::string target = PathOf(to);
  Watch watch(progress);
  MergeOptions options{.mode = MergeOptions::Mode::kUnion, .repack = OptionsOf(form, watch)};
  if (average) {
    options.mode = MergeOptions::Mode::kAverage;
    options.weights = average->first;
    if (average->second) options.accumulate = MergeOptions::Accumulate::kF64;
  }
  if (first_objects) options.objects = MergeOptions::Objects::kFirst;
  options.commit.step = step.value_or(kNoStep);
  options.commit.provenance = provenance;
  return TupleOf(Value(watch.Run([&] { return MergeCheckpoints(sources, target, options); })));
}

nb::tuple Thin(nb::handle path, const std::optional<std::string>& to, const Strings& drop,
               bool remove_source, const Form& form, nb::handle progress) {
  const std::string source = PathOf(path);
  Watch watch(progress);
  const ThinOptions options{
      .drop = drop, .remove_source = remove_source, .repack = OptionsOf(form, watch)};
  const ThinReport report = Value(
      watch.Run([&] { return ThinCheckpoint({.from = source, .to = to.value_or("")}, options); }));
  return nb::make_tuple(Text(report.path), TupleOf(report.made), report.is_source_removed);
}

nb::list TextsOf(const Strings& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(Text(text));
  return list;
}

nb::list BlobsOf(const RepairReport& report) {
  nb::list blobs;
  for (const RepairedBlob& blob : report.blobs) {
    nb::list problems;
    for (const Status& problem : blob.problems) problems.append(ErrorOf(problem));
    blobs.append(nb::make_tuple(blob.id.ToHex(), blob.size_bytes,
                                blob.from.empty() ? nb::none() : nb::object(Text(blob.from)),
                                problems));
  }
  return blobs;
}

// The error or None, and what the report has.
nb::tuple Repair(nb::handle path, const Strings& replicas, nb::handle to, bool rebuild_index,
                 int threads, nb::handle progress) {
  const std::string source = PathOf(path);
  const std::string target = PathOf(to);
  Watch watch(progress);
  const RepairOptions options{
      .rebuild_index = rebuild_index, .threads = threads, .on_progress = watch.OnPhase()};
  const RepairReport report = watch.Run([&] {
    return RepairCheckpoint({.damaged = source, .replicas = replicas, .to = target}, options);
  });
  const auto place = [](const std::string& text) {
    return text.empty() ? nb::none() : nb::object(Text(text));
  };
  return nb::make_tuple(
      report.status.ok() ? nb::none() : ErrorOf(report.status),
      nb::make_tuple(HexOrNone(report.attempt), StepOrNone(report.step), place(report.marker_from),
                     place(report.index_from), BlobsOf(report), TextsOf(report.lost_tensors),
                     TextsOf(report.lost_objects), report.was_committed));
}

}  // namespace

// What nanobind cannot say of tuples that are made of objects.
#define SEALPOINT_FORM "form: tuple[str | None, int, int, int, int, int, int, bool]"
#define SEALPOINT_MADE "tuple[str, int, int | None, int, int, int, int, int, bool, bool]"

void BindRepack(nb::module_& m) {
  m.def("copy", Copy, nb::arg("source"), nb::arg("destination"), nb::arg("match"), nb::arg("drop"),
        nb::arg("flatten"), nb::arg("form"), nb::arg("progress").none(),
        nb::sig("def copy(source: str, destination: str, match: Sequence[str], "
                "drop: Sequence[str], flatten: bool, " SEALPOINT_FORM
                ", progress: object) -> " SEALPOINT_MADE));
  m.def("merge", Merge, nb::arg("sources"), nb::arg("destination"), nb::arg("average").none(),
        nb::arg("first_objects"), nb::arg("step").none(), nb::arg("provenance"), nb::arg("form"),
        nb::arg("progress").none(),
        nb::sig("def merge(sources: Sequence[str], destination: str, "
                "average: tuple[Sequence[float], bool] | None, first_objects: bool, "
                "step: int | None, provenance: Sequence[tuple[str, str]], " SEALPOINT_FORM
                ", progress: object) -> " SEALPOINT_MADE));
  m.def("thin", Thin, nb::arg("path"), nb::arg("destination").none(), nb::arg("drop"),
        nb::arg("remove_source"), nb::arg("form"), nb::arg("progress").none(),
        nb::sig("def thin(path: str, destination: str | None, drop: Sequence[str], "
                "remove_source: bool, " SEALPOINT_FORM
                ", progress: object) -> tuple[str, " SEALPOINT_MADE ", bool]"));
  m.def("repair", Repair, nb::arg("path"), nb::arg("replicas"), nb::arg("destination"),
        nb::arg("rebuild_index"), nb::arg("threads"), nb::arg("progress").none(),
        nb::sig("def repair(path: str, replicas: Sequence[str], destination: str, "
                "rebuild_index: bool, threads: int, progress: object) -> "
                "tuple[Exception | None, tuple[str | None, int | None, str | None, str | None, "
                "list[tuple[str, int, str | None, list[Exception]]], list[str], list[str], "
                "bool]]"));
}

}  // namespace sealpoint::python
