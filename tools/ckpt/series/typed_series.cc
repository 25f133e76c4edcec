// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/series/typed_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sealpoint/storage.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools {

Status NoSeries(const std::string& path) {
  const auto directory = DefaultStorage()->OpenDirectory(path);
  if (!directory) return Status(directory.error()).AtPath(path);
  return Status(Code::kNotFound, "no checkpoint of a series is in this directory").AtPath(path);
}

Result<Lineage> FindLineage(const std::string& series, std::string_view program) {
  Result<SeriesListing> listing = Series(series).List();
  if (!listing) return listing.error();
  const std::set<AttemptId> branches = listing->branches();
  Lineage lineage;
  std::uint64_t left_out = 0;
  for (SeriesEntry& entry : listing->entries) {
    if (entry.verdict != Verdict::kCommitted) {
      Status problem = entry.problem;
      Skip(program, std::move(entry), std::move(problem), lineage);
    } else if (branches.contains(entry.attempt)) {
      ++left_out;
    } else if (lineage.entries.empty() || lineage.entries.back().attempt != entry.attempt) {
      lineage.entries.push_back(std::move(entry));
    }
  }
  if (left_out > 0) {
    PrintError(program, fmt::format("left out: {} on other branches of forks",
                                    FormatCount(left_out, "checkpoint")));
  }
  std::ranges::reverse(lineage.entries);
  if (!lineage.entries.empty()) return lineage;
  return lineage.skipped.empty() ? NoSeries(series) : lineage.skipped.back().problem;
}

void Skip(std::string_view program, SeriesEntry entry, Status problem, Lineage& lineage) {
  PrintError(program, fmt::format("skipped {}: {}", entry.name, problem.ToString()));
  entry.problem = std::move(problem);
  lineage.skipped.push_back(std::move(entry));
}

Json EntryToJson(const SeriesEntry& entry) {
  return {{"path", entry.path},
          {"step", StepToJson(entry.step)},
          {"sequence", entry.sequence},
          {"attempt", IdToJson(entry.attempt)}};
}

void WriteSkipped(const Lineage& lineage, JsonWriter& json) {
  json.BeginArray("skipped");
  for (const SeriesEntry& entry : lineage.skipped) {
    json.Element({{"path", entry.path}, {"error", StatusToJson(entry.problem)}});
  }
  json.End();
}

}  // namespace sealpoint::tools
