// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/verify/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tools/ckpt/verify/print.h"
#include "tools/common/hint.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::verify {
namespace {

constexpr std::array kVerdicts = {std::pair(Verdict::kCommitted, "valid"),
                                  std::pair(Verdict::kCorrupt, "corrupt"),
                                  std::pair(Verdict::kIncomplete, "incomplete"),
                                  std::pair(Verdict::kUnreadable, "unreadable"),
                                  std::pair(Verdict::kUnsupported, "unsupported"),
                                  std::pair(Verdict::kUncommitted, "uncommitted")};

// "3 valid, 1 uncommitted"; of a part of the chunks "3 without damage found".
std::string CountsText(const SeriesResult& series, const VerifyPart& part) {
  std::string text;
  for (const auto& [verdict, name] : kVerdicts) {
    const std::uint64_t count = series.count(verdict);
    const bool is_good = verdict == Verdict::kCommitted;
    if (count == 0 && !is_good && verdict != Verdict::kUncommitted) continue;
    const std::string_view word = is_good && !part.is_whole() ? "without damage found" : name;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  }
  if (series.older_count > 0) text += fmt::format(", {} older not checked", series.older_count);
  return text;
}

// "; 816 MB, 280 MB distinct".
std::string BytesOf(const SeriesResult& series) {
  if (series.total_bytes == 0) return "";
  const std::string total = "; " + BytesText(series.total_bytes);
  if (series.shared_bytes == 0) return total;
  return fmt::format("{}, {} distinct", total, BytesText(series.total_bytes - series.shared_bytes));
}

}  // namespace

Since::Since(const SeriesListing& listing, std::optional<std::uint64_t> step) {
  if (!step) return;
  for (const SeriesEntry& entry : listing.entries) {
    const bool has_reached =
        entry.verdict == Verdict::kCommitted && entry.step != kNoStep && entry.step >= *step;
    if (has_reached) first_ = std::min(first_.value_or(entry.sequence), entry.sequence);
  }
  if (first_) return;
  first_ = UINT64_MAX;
  const SeriesEntry* const newest = listing.newest();
  status_ = Status(Code::kNotFound,
                   fmt::format("no checkpoint has reached step {}{}", *step,
                               newest == nullptr ? std::string()
                                                 : fmt::format(", the newest has step {}",
                                                               FormatStep(newest->step))));
}

bool Since::Includes(const SeriesEntry& entry) const {
  return !first_ || entry.verdict != Verdict::kCommitted || entry.sequence >= *first_;
}

void PrintSeries(const SeriesResult& series, const Options& options) {
  if (!series.error.ok()) PrintViolation(series.error);
  const SeriesListing& listing = series.listing;
  const bool has_newest = listing.newest() != nullptr;
  if (options.quiet && series.error.ok() && !has_newest) {
    Print("{}: no checkpoint of the series is committed\n", Printable(series.path));
  }
  if (options.quiet) return;
  for (const AttemptId& fork : listing.forks) {
    PrintNote(series.path, fmt::format("attempt {} shares its parent with another", fork.ToHex()));
  }
  for (const std::string& name : listing.foreign) {
    PrintNote(series.path, "foreign, not checked: " + name);
  }
  const std::uint64_t more = listing.foreign_count - listing.foreign.size();
  if (more > 0) {
    PrintNote(series.path, "foreign, not checked: " + FormatCount(more, "more name"));
  }
  if (listing.entries.empty()) PrintHint(series.path, HintForSeries(series.path));
  if (!series.error.ok()) return;
  const std::string since = options.since ? fmt::format(", since step {}", *options.since) : "";
  Print("{}: series of {} ({}{}): {}{}\n", Printable(series.path),
        FormatCount(listing.entries.size(), "checkpoint"), LevelText(options.level, options.part),
        since, CountsText(series, options.part), BytesOf(series));
}

void WriteSeries(const SeriesResult& series, JsonWriter& json) {
  const SeriesListing& listing = series.listing;
  json.BeginObject();
  json.Field("path", series.path);
  if (!series.error.ok()) json.Field("error", StatusToJson(series.error));
  json.Field("newest", listing.newest() == nullptr ? Json() : Json(listing.newest()->name));
  json.Field("checkpoint_count", listing.entries.size());
  for (const auto& [verdict, word] : kVerdicts) {
    json.Field(fmt::format("{}_count", word), series.count(verdict));
  }
  json.Field("older_count", series.older_count);
  json.Field("total_bytes", series.total_bytes);
  json.Field("distinct_bytes", series.total_bytes - series.shared_bytes);
  json.BeginArray("uncommitted");
  for (const SeriesEntry& entry : listing.entries) {
    if (entry.verdict != Verdict::kUncommitted) continue;
    json.Element(
        {{"path", entry.path}, {"is_void", entry.is_void}, {"size_bytes", entry.size_bytes}});
  }
  json.End();
  json.BeginArray("forks");
  for (const AttemptId& fork : listing.forks) json.Element(fork.ToHex());
  json.End();
  json.BeginArray("foreign");
  for (const std::string& name : listing.foreign) json.Element(name);
  json.End();
  json.Field("foreign_count", listing.foreign_count);
  json.End();
}

}  // namespace sealpoint::tools::verify
