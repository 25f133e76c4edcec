// SPDX-License-Identifier: Apache-2.0
#include "lib/series/series_scan.h"

#include <algorithm>
#include <cstdio>

#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"

namespace sealpoint {
namespace internal {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kStepDigits = 12;
constexpr std::size_t kAttemptDigits = 8;

bool AllOf(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

struct NamesFound {
  bool has_ours = false;
  bool has_marker = false;
};

// Adds up what is ours and notes KEEP.
NamesFound LookAtNames(const std::vector<EntryInfo>& entries, SeriesEntry& entry) {
  NamesFound found;
  for (const EntryInfo& info : entries) {
    const NameKind kind = ParseName(info.name).kind;
    if (kind == NameKind::kForeign) continue;
    found.has_ours = true;
    found.has_marker = found.has_marker || kind == NameKind::kMarker;
    entry.size_bytes += info.size_bytes;
    entry.is_kept = entry.is_kept || kind == NameKind::kKeep;
  }
  return found;
}

void LookAtMarker(const Directory& directory, bool has_marker, SeriesEntry& entry) {
  const auto marker = ReadMarker(directory);
  entry.problem = marker.ok() ? CheckCommitted(directory.path(), marker->marker) : marker.error();
  // A directory of the series that holds nothing yet is an attempt that got no further.
  if (!has_marker && entry.problem.code() == Code::kNotACheckpoint) {
    entry.problem = Status(Code::kUncommitted, entry.problem.message()).AtPath(entry.path);
  }
  entry.verdict = VerdictOf(entry.problem);
  if (!marker.ok()) return;
  entry.is_void = marker->marker.kind == MarkerKind::kVoid;
  entry.attempt = marker->marker.attempt;
  entry.parent = marker->marker.parent;
  entry.sequence = marker->marker.sequence;
  entry.step = marker->marker.step;
}

}  // namespace

bool IsSeriesDirectoryName(std::string_view name) {
  const std::size_t dash = kPrefix.size() + kStepDigits;
  if (!name.starts_with(kPrefix) || name.size() != dash + 1 + kAttemptDigits) return false;
  return AllOf(name.substr(kPrefix.size(), kStepDigits), "0123456789") && name[dash] == '-' &&
         AllOf(name.substr(dash + 1), "0123456789abcdef");
}

Result<ScannedEntry> ScanEntry(const Storage& storage, const std::string& series_path,
                               const std::string& name) {
  ScannedEntry scanned;
  SeriesEntry& entry = scanned.entry;
  entry.name = name;
  entry.path = JoinPath(series_path, name);
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage.OpenDirectory(entry.path));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory->List());
  const NamesFound found = LookAtNames(entries, entry);
  scanned.is_ours = found.has_ours || IsSeriesDirectoryName(name);
  if (scanned.is_ours) LookAtMarker(*directory, found.has_marker, entry);
  return scanned;
}

}  // namespace internal

std::string SeriesDirectoryName(std::uint64_t step, const AttemptId& attempt) {
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%012llu", static_cast<unsigned long long>(step));
  return std::string(internal::kPrefix) + digits + "-" +
         attempt.ToHex().substr(0, internal::kAttemptDigits);
}

}  // namespace sealpoint
