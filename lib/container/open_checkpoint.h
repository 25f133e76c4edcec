// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONTAINER_OPEN_CHECKPOINT_H_
#define SEALPOINT_LIB_CONTAINER_OPEN_CHECKPOINT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/marker.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/bytes.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// The checks of a checkpoint from outside in, in the order of spec/container.md: directory, marker,
// index, lengths of the blobs. Errors carry the rule, the file's path and the offset in it.

namespace sealpoint::internal::container {

// Errors: NotFound (R-DIR-01: missing, or no directory), Io.
Result<std::unique_ptr<Directory>> OpenCheckpointDirectory(const Storage& storage,
                                                           const std::string& path);

// True if a name belongs to something other than a file or a link to a file; it then counts as
// missing.
bool IsNoFile(const Directory& directory, std::string_view name);

struct MarkerFile {
  Bytes bytes;
  format::Marker marker;
};

// Reads at most one byte more than the size of a marker. A void marker is valid here: see
// CheckCommitted. Errors: Uncommitted (R-MRK-01) if there are other files of an attempt, else
// NotACheckpoint (R-DIR-05); Corrupt, Incomplete, Unsupported, Io.
Result<MarkerFile> ReadMarker(const Directory& directory);
// The same checks on bytes that were read elsewhere. `directory_path` is for errors only.
Result<MarkerFile> DecodeMarkerFile(const std::string& directory_path, Bytes bytes);
// Uncommitted (R-MRK-09) for a void marker.
Status CheckCommitted(const std::string& directory_path, const format::Marker& marker);

struct IndexFile {
  std::shared_ptr<const Bytes> bytes;  // the whole file
  metadata::Metadata metadata;         // decoded in place
};

// R-MRK-05 to R-MRK-08, R-HDR-*, R-IDX-*. Allocates the length that the marker pins, once the limit
// allows it and the file was found to have it. Precondition: a committed marker.
// Errors: Incomplete, Corrupt, Unsupported, LimitExceeded, Io.
Result<IndexFile> ReadIndex(const Directory& directory, const format::Marker& marker,
                            const Limits& limits);
// The first step: reads the bytes and compares only their length.
Result<Bytes> ReadIndexBytes(const Directory& directory, const format::Marker& marker,
                             const Limits& limits);
Result<IndexFile> DecodeIndexFile(const std::string& directory_path, const format::Marker& marker,
                                  Bytes bytes, const Limits& limits);

// R-BLB-01 and R-BLB-09, the length of each blob: one error per blob that is missing or short
// (Incomplete), longer (Corrupt), or cannot be examined (Io), in index order.
std::vector<Status> FindFileViolations(const Directory& directory, const metadata::Metadata& index);
// Returns one error for all files: the first one, with corrupt before incomplete before all others.
// Its message also names the other files.
Status CheckFiles(const Directory& directory, const metadata::Metadata& index);
// The verification of one blob's length. `what` is the length found.
Status CheckBlobSize(const std::string& directory_path, const metadata::BlobPin& pin,
                     std::uint64_t found);

// A directory with verified marker and index.
struct CommittedFiles {
  std::unique_ptr<Directory> directory;
  MarkerFile marker;
  IndexFile index;
  std::unique_ptr<CommittedFiles> base{};  // of a delta
};

// Where bases are, by attempt. Any other base lies beside its delta (spec/delta.md section 1).
using BaseDirectories = std::map<AttemptId, std::string>;

struct GivenFiles {
  Bytes marker;
  Bytes index;
};

// All of the above, and the same of all bases (R-DLT-03, R-DLT-04). With `given`, marker and index
// are checked in the same way but not read; the directory is opened in any case.
Result<CommittedFiles> OpenCommitted(const Storage& storage, const std::string& path,
                                     const Limits& limits, bool check_files,
                                     std::optional<GivenFiles> given = {},
                                     const BaseDirectories& bases = {});

// The base of the checkpoint with this index at `path`, with the bases below it; null if it has
// none.
Result<std::unique_ptr<CommittedFiles>> OpenBase(const Storage& storage, const std::string& path,
                                                 const metadata::Metadata& index,
                                                 const Limits& limits, bool check_files,
                                                 const BaseDirectories& bases = {});

// The reference to a base that a delta of it stores.
BaseRef PinOf(const CommittedFiles& base);

// R-DLT-09: makes the `KEEP` of a base, durably, for a delta in `delta_directory`. One that is
// there stays.
Status PinBase(Directory& base, const std::string& delta_directory);
// R-DLT-10: marker and `KEEP` of a base are there.
Status CheckBaseStays(const Directory& base);

}  // namespace sealpoint::internal::container

#endif  // SEALPOINT_LIB_CONTAINER_OPEN_CHECKPOINT_H_
