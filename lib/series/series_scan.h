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

// How often a series that changes under a listing is listed again. Each time a checkpoint was
// deleted or published meanwhile, which takes longer than a listing.
inline constexpr int kListingsMax = 32;

enum class SeriesDetail : std::uint8_t {
  kMarkers,  // without size_bytes and is_kept of committed ones: one round trip for each of these
  kFiles,    // everything
};

// The directories of a series. The newest of them was the newest at some moment of the call
// (R-SER-22), though savers, prunings and clean-ups go on meanwhile: it is listed again until
// nothing that matters changed between two looks. An older one may be gone by now. What the storage
// fails to read is an entry of verdict kUnreadable, whatever the code of the error. A path that
// does not exist is an empty series. Errors: Io (also if it changed each time), and others of the
// storage; never NotFound.
Result<SeriesListing> ScanSeries(const Storage& storage, const std::string& path,
                                 SeriesDetail detail);

// What a directory is, by its names and its marker.
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

// Whether the entry's marker is no longer there, or is another one: what was found wrong behind it
// does not count then. False if that could not be read.
bool IsMarkerGone(const Directory& series, const SeriesEntry& entry);

// The bytes of a directory's marker; nothing if there is no such file. Errors: of the storage.
Result<std::optional<Bytes>> ReadMarkerBytes(const Directory& directory);

// NotFound becomes Io: only a series without a checkpoint is NotFound (R-SER-20).
Status NeverNotFound(Status status);

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_SERIES_SCAN_H_
