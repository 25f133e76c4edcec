// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_SERIES_SCAN_H_
#define SEALPOINT_LIB_SERIES_SERIES_SCAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sealpoint/series.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::series {

// True for names that SeriesDirectoryName makes.
bool IsSeriesDirectoryName(std::string_view name);

// Maximum number of listings of a series that changes meanwhile. Each time a checkpoint was deleted
// or published, which takes longer than a listing.
inline constexpr int kListingsMax = 32;

enum class SeriesDetail : std::uint8_t {
  kMarkers,  // without size_bytes and is_kept of committed ones: one round trip for each of these
  kFiles,    // everything
};

// Lists the directories of a series. The newest entry was the newest at some moment of the call
// (R-SER-22), despite concurrent savers, prunings and clean-ups: it is listed again until two
// consecutive scans have no relevant difference. An older one may no longer exist. Entries that the
// storage fails to read have the verdict kUnreadable, regardless of the error code. A path that
// does not exist is an empty series. Errors: Io (also if it changed each time), and others of the
// storage; never NotFound.
Result<SeriesListing> ScanSeries(const Storage& storage, const std::string& path,
                                 SeriesDetail detail);

// Kind of a directory, by its names and its marker.
struct DirectoryLook {
  enum class Kind : std::uint8_t {
    kForeign,  // no file of ours, and not named as ours
    kOurs,
    kChanged,  // it was removed, or published, during the look
  } kind = Kind::kForeign;
  SeriesEntry entry{};    // if kOurs; name and path always
  bool is_empty = false;  // nothing is in it
};
// `directory` is the entry `name` of the series at `series_path`, and open.
DirectoryLook LookInside(const Directory& directory, const std::string& series_path,
                         const std::string& name);

// True if `KEEP` is one that a committer made for deltas. Errors: NotFound, those of the storage.
Result<bool> IsKeepOfDeltas(const Directory& directory);

// True if the entry's marker was removed or replaced; a fault found in the directory is then
// irrelevant. False if that could not be read.
bool IsMarkerGone(const Directory& series, const SeriesEntry& entry);

// The bytes of a directory's marker; empty if there is no such file. Errors: those of the storage.
Result<std::optional<Bytes>> ReadMarkerBytes(const Directory& directory);

// True for the error of a checkpoint or file that is not there: another process removed it.
bool IsGone(const Status& error);

// NotFound becomes Io: only a series without a checkpoint is NotFound (R-SER-20).
Status NeverNotFound(Status status);

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_SERIES_SCAN_H_
