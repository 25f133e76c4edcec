// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_SERIES_SCAN_H_
#define SEALPOINT_LIB_SERIES_SERIES_SCAN_H_

#include <string>

#include "sealpoint/series.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// What one directory of a series is, by its names and its marker alone. `is_ours` is false where it
// holds no file of ours and is not named like a directory of a series.
struct ScannedEntry {
  SeriesEntry entry{};
  bool is_ours = false;
};
Result<ScannedEntry> ScanEntry(const Storage& storage, const std::string& series_path,
                               const std::string& name);

// True for names that SeriesDirectoryName makes.
bool IsSeriesDirectoryName(std::string_view name);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SERIES_SERIES_SCAN_H_
