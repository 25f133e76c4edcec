// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_BLOB_CHECK_H_
#define SEALPOINT_READERS_VERIFY_BLOB_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/file_header.h"
#include "lib/format/marker.h"
#include "lib/format/trailer.h"
#include "readers/verify/chunk_choice.h"
#include "readers/verify/manifest_check.h"
#include "readers/verify/record_walker.h"
#include "readers/verify/verify_context.h"

namespace sealpoint::internal {

// The record groups of a whole blob.
struct BlobGroups {
  Bytes digests;             // the group list; verified
  std::vector<bool> is_bad;  // by group: reported already
};

// Consecutive record groups of a blob whose chunks one thread reads in one go.
struct ScanUnit {
  std::size_t blob = 0;
  std::uint32_t first_group = 0;
  std::uint32_t end_group = 0;
  RecordWalker walker;  // at the first record of `first_group`
  std::shared_ptr<const BlobGroups> groups;
  std::shared_ptr<const ChunkChoice> choice;
};

// What the checks of all blobs have in common.
struct BlobCheckInput {
  const VerifyContext& context;
  const Marker& marker;
  const ShardMap& map;
  SeenEmpties& empties;
  const CheckpointKey& checkpoint;
  // A unit of the scan is closed when its chunks have this many bytes.
  std::uint64_t unit_size_bytes;
};

// R-BLB-01 and R-BLB-09. Findings go to the context. True if the rest can be checked: a longer
// file still holds all that is pinned.
bool CheckBlobLength(const VerifyContext& context, const Metadata& index, std::size_t blob);

// All of a blob with the pinned length but its chunks: header, trailer, table, manifest, padding of
// the sections. Each section is checked as long as something good pins it, whatever happened to the
// others.
class BlobCheck {
 public:
  BlobCheck(const BlobCheckInput& input, std::size_t blob);

  // Findings go to the context. If the level is full, appends what is to be read of the chunk
  // area to `units`.
  void Run(Worker& worker, std::vector<ScanUnit>& units);

 private:
  std::optional<FileHeader> CheckHeader(const Trailer& trailer);
  Status CheckHeaderPins(const FileHeader& header) const;
  std::optional<Trailer> CheckTrailer();
  bool CheckTrailerPins(const Trailer& trailer, ByteSpan bytes);
  // Yields where the chunk area ends, as far as the records say.
  std::optional<std::uint64_t> CheckTable(std::vector<ScanUnit>& units);
  std::uint64_t WalkGroup(std::uint32_t group, std::uint64_t group_at, ByteSpan records,
                          BlobGroups& groups, RecordWalker& walker);
  std::uint64_t BytesToRead(const WalkedChunk& chunk) const;
  void CheckGroups(std::uint32_t first_group, std::uint32_t end_group,
                   const std::shared_ptr<BlobGroups>& groups, RecordWalker& walker,
                   std::vector<ScanUnit>& units);
  void CheckAreaEnd(std::optional<std::uint64_t> last_end, const std::optional<Trailer>& trailer);
  void CheckManifest(const Trailer& trailer, const BlobSections& sections,
                     UnknownFields unknown_fields);

  // The padding [begin, end) is zero (R-BLB-08).
  void CheckPadding(std::uint64_t begin, std::uint64_t end);
  // Nothing if the bytes cannot be read, which is then among the findings.
  std::optional<RangeBytes> Read(std::uint64_t offset, std::uint64_t size);
  void Report(Status violation);
  // A violation at an offset of the file.
  void ReportAt(std::uint64_t offset, Code code, std::string_view rule, std::string message);

  const BlobCheckInput& input_;
  const VerifyContext& context_;
  const std::size_t blob_;
  const BlobPin pin_;
  const std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::shared_ptr<const ChunkChoice> choice_;
  Worker* worker_ = nullptr;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_BLOB_CHECK_H_
