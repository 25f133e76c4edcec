// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/series.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "lib/c/boundary.h"

struct sealpoint_series {
  explicit sealpoint_series(std::vector<sealpoint::SeriesEntry> of) : entries(std::move(of)) {
    for (const sealpoint::SeriesEntry& entry : entries) problems.emplace_back(entry.problem);
  }
  std::vector<sealpoint::SeriesEntry> entries;
  std::vector<sealpoint_error> problems;
};

namespace sealpoint::c_api {
namespace {

Status TakeSeconds(std::uint64_t given, std::string_view what, std::chrono::seconds& taken) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 32;  // more than a century
  if (given > kMax) {
    return {Code::kInvalidArgument, std::string(what) + " is " + std::to_string(given) +
                                        ", expected at most " + std::to_string(kMax)};
  }
  taken = std::chrono::seconds(given);
  return {};
}

Status FillEntry(const sealpoint_series& series, std::uint64_t index, sealpoint_series_entry* out) {
  SEALPOINT_C_TRY(CheckIndex(index, series.entries.size(), "entries"));
  const SeriesEntry& entry = series.entries[index];
  sealpoint_series_entry filled{};
  filled.verdict = static_cast<std::uint32_t>(entry.verdict);
  filled.name = Out(entry.name);
  filled.path = Out(entry.path);
  filled.is_void = entry.is_void ? 1 : 0;
  filled.is_kept = entry.is_kept ? 1 : 0;
  filled.attempt = Out(entry.attempt);
  filled.parent = Out(entry.parent);
  filled.sequence = entry.sequence;
  filled.step = entry.step;
  filled.size_bytes = entry.size_bytes;
  filled.problem = entry.problem.ok() ? nullptr : &series.problems[index];
  return Fill(filled, out);
}

Status TakeRetention(const sealpoint_retention& given, RetentionPolicy& taken) {
  if (given.keep_last != 0) taken.keep_last = given.keep_last;
  taken.keep_every_n_steps = given.keep_every_n_steps;
  taken.keep_checked = given.keep_checked;
  taken.max_bytes = given.max_bytes;
  SEALPOINT_C_TRY(TakeSeconds(given.keep_within_s, "keep_within_s", taken.keep_within));
  SEALPOINT_C_TRY(
      CheckArray(given.keep_per_period, given.keep_per_period_count, "keep_per_period"));
  for (std::uint64_t i = 0; i < given.keep_per_period_count; ++i) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
    KeepPerPeriod& rule = taken.keep_per_period.emplace_back();
    SEALPOINT_C_TRY(TakeSeconds(given.keep_per_period[i].period_s, "period_s", rule.period));
    // A count that is cut would keep less.
    rule.count = static_cast<std::uint32_t>(std::min(given.keep_per_period[i].count, kMax));
  }
  std::string_view metric;
  SEALPOINT_C_TRY(Take(given.best_metric, "best_metric", metric));
  if (metric.empty()) return {};
  taken.keep_best =
      KeepBest{.metric = std::string(metric),
               .best = given.best_is_greatest != 0 ? BestMetric::kGreatest : BestMetric::kLeast,
               .count = given.best_count == 0 ? 1 : given.best_count};
  return {};
}

// The checkpoints that are deleted, or would be.
Result<std::unique_ptr<sealpoint_series>> Prune(const std::string& path,
                                                const sealpoint_retention* given,
                                                std::uint64_t* bytes_freed) {
  sealpoint_retention retention;
  RetentionPolicy policy;
  SEALPOINT_C_TRY(Take(given, retention));
  SEALPOINT_C_TRY(TakeRetention(retention, policy));
  PruneReport report = Series(path).Prune(policy, {.dry_run = retention.dry_run != 0});
  if (bytes_freed != nullptr) *bytes_freed = report.bytes_freed;
  SEALPOINT_C_TRY(report.status);
  std::vector<SeriesEntry> deleted;
  for (PruneDecision& decision : report.decisions) {
    if (!decision.keep) deleted.push_back(std::move(decision.entry));
  }
  return std::make_unique<sealpoint_series>(std::move(deleted));
}

Status WriteName(const std::string& name, char* out, std::uint64_t out_size) {
  if (name.size() >= out_size) {
    return {Code::kInvalidArgument, "out_size is " + std::to_string(out_size) +
                                        ", expected at least " + std::to_string(name.size() + 1)};
  }
  std::memcpy(out, name.c_str(), name.size() + 1);
  return {};
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Take;
using SeriesHandle = sealpoint::Result<std::unique_ptr<sealpoint_series>>;

extern "C" {

int32_t sealpoint_series_list(sealpoint_string path, sealpoint_series** out,
                              sealpoint_error** error) {
  return Make(out, error, [&]() -> SeriesHandle {
    std::string taken;
    SEALPOINT_C_TRY(Take(path, "path", taken));
    auto listing = sealpoint::Series(std::move(taken)).List();
    if (!listing.ok()) return listing.error();
    return std::make_unique<sealpoint_series>(std::move(listing->entries));
  });
}

int32_t sealpoint_series_newest(sealpoint_string path, int32_t allow_fallback,
                                sealpoint_series** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> SeriesHandle {
    std::string taken;
    SEALPOINT_C_TRY(Take(path, "path", taken));
    sealpoint::ResumeOptions options;
    options.allow_fallback = allow_fallback != 0;
    auto newest = sealpoint::Series(std::move(taken)).Newest(options);
    if (!newest.ok()) return newest.error();
    std::vector<sealpoint::SeriesEntry> entries = std::move(newest->skipped);
    entries.insert(entries.begin(), std::move(newest->entry));
    return std::make_unique<sealpoint_series>(std::move(entries));
  });
}

void sealpoint_series_free(sealpoint_series* series) { delete series; }

uint64_t sealpoint_series_count(const sealpoint_series* series) {
  return series == nullptr ? 0 : series->entries.size();
}

int32_t sealpoint_series_get_entry(const sealpoint_series* series, uint64_t index,
                                   sealpoint_series_entry* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(series, "series"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckOut(out));
    return sealpoint::c_api::FillEntry(*series, index, out);
  });
}

int32_t sealpoint_series_prune(sealpoint_string series, const sealpoint_retention* retention,
                               sealpoint_series** deleted, uint64_t* bytes_freed,
                               sealpoint_error** error) {
  sealpoint_series* unwanted = nullptr;
  if (bytes_freed != nullptr) *bytes_freed = 0;
  const std::int32_t code =
      Make(deleted != nullptr ? deleted : &unwanted, error, [&]() -> SeriesHandle {
        std::string path;
        SEALPOINT_C_TRY(Take(series, "series", path));
        return sealpoint::c_api::Prune(path, retention, bytes_freed);
      });
  delete unwanted;
  return code;
}

int32_t sealpoint_series_directory_name(uint64_t step, const sealpoint_id* attempt, char* out,
                                        uint64_t out_size, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(attempt, "attempt"));
    SEALPOINT_C_TRY(NotNull(out, "out"));
    const std::string name =
        sealpoint::SeriesDirectoryName(step, sealpoint::c_api::In<sealpoint::AttemptId>(*attempt));
    return sealpoint::c_api::WriteName(name, out, out_size);
  });
}

}  // extern "C"
