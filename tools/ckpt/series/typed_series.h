// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_SERIES_TYPED_SERIES_H_
#define SEALPOINT_TOOLS_CKPT_SERIES_TYPED_SERIES_H_

#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/series.h"
#include "sealpoint/status.h"
#include "tools/common/hint.h"
#include "tools/common/json.h"

// Functions shared by the commands that work on a series.

namespace sealpoint::tools {

inline constexpr const char* kDryRunHint = "nothing was changed; pass --yes to apply it";
// For HintForSeries.
inline constexpr const char* kSeriesAbove = "its series is the directory above";

// Why there is nothing to do at a path that somebody typed: for the library a series may be empty,
// or not exist.
Status NoSeries(const std::string& path);

// The lineage of the newest checkpoint of a series.
struct Lineage {
  std::vector<SeriesEntry> entries;  // oldest first; each attempt once
  std::vector<SeriesEntry> skipped;  // with their problems
};

// Names on standard error what is not committed. Errors: those of Series::List; if nothing is
// committed, the problem of one directory, or NoSeries.
Result<Lineage> FindLineage(const std::string& series, std::string_view program);
// Adds the entry to `skipped`, and names it on standard error.
void Skip(std::string_view program, SeriesEntry entry, Status problem, Lineage& lineage);

Json EntryToJson(const SeriesEntry& entry);
void WriteSkipped(const Lineage& lineage, JsonWriter& json);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_SERIES_TYPED_SERIES_H_
