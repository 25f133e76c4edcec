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

namespace sealpoint::internal::verify {

// The record groups of a whole blob.
struct BlobGroups {
  Bytes digests;             // the group list; verified
  std::vector<bool> is_bad;  // by group: reported already
};

// Consecutive record groups of a blob; one thread reads their chunks in one pass.
struct ScanUnit {
  std::size_t blob = 0;
  std::uint32_t first_group = 0;
  std::uint32_t end_group = 0;
  RecordWalker walker;  // at the first record of `first_group`
  std::shared_ptr<const BlobGroups> groups;
  std::shared_ptr<const ChunkChoice> choice;
};

// Data shared by the checks of all blobs.
struct BlobCheckInput {
  const VerifyContext& context;
  const format::Marker& marker;
  const ShardMap& map;
  ManifestTotals& totals;
  const CheckpointKey& checkpoint;
  // A unit of the scan is closed when its chunks have this many bytes.
  std::uint64_t unit_size_bytes;
};

// R-BLB-01 and R-BLB-09. Findings go to the context. True if the rest can be checked: a longer
// file still holds all that is pinned.
bool CheckBlobLength(const VerifyContext& context, const metadata::Metadata& index,
                     std::size_t blob);

// Checks all of a blob with the pinned length except its chunks: header, trailer, table, manifest,
// padding of the sections. Each section is checked if an intact section pins it, regardless of the
// others.
class BlobCheck {
 public:
  BlobCheck(const BlobCheckInput& input, std::size_t blob);

  // Reports findings to the context. At the full level, appends the parts of the chunk area to read
  // to `units`.
  void Run(Worker& worker, std::vector<ScanUnit>& units);

 private:
  std::optional<format::FileHeader> CheckHeader(const format::Trailer& trailer);
  Status CheckHeaderPins(const format::FileHeader& header) const;
  std::optional<format::Trailer> CheckTrailer();
  bool CheckTrailerPins(const format::Trailer& trailer, ByteSpan bytes);
  // Returns the end of the chunk area, as far as the records determine it.
  std::optional<std::uint64_t> CheckTable(std::vector<ScanUnit>& units);
  std::uint64_t WalkGroup(std::uint32_t group, std::uint64_t group_at, ByteSpan records,
                          BlobGroups& groups, RecordWalker& walker);
  std::uint64_t BytesToRead(const WalkedChunk& chunk) const;
  void CheckGroups(std::uint32_t first_group, std::uint32_t end_group,
                   const std::shared_ptr<BlobGroups>& groups, RecordWalker& walker,
                   std::vector<ScanUnit>& units);
  void CheckAreaEnd(std::optional<std::uint64_t> last_end,
                    const std::optional<format::Trailer>& trailer);
  void CheckManifest(const format::Trailer& trailer, const format::BlobSections& sections,
                     const metadata::AnnouncedFields& announced);

  // The padding [begin, end) is zero (R-BLB-08).
  void CheckPadding(std::uint64_t begin, std::uint64_t end);
  // Empty if the bytes cannot be read; that is then one of the findings.
  std::optional<pipeline::RangeBytes> Read(std::uint64_t offset, std::uint64_t size);
  void Report(Status violation);
  // A violation at an offset of the file.
  void ReportAt(std::uint64_t offset, Code code, std::string_view rule, std::string message);

  const BlobCheckInput& input_;
  const VerifyContext& context_;
  const std::size_t blob_;
  const metadata::BlobPin pin_;
  const std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::shared_ptr<const ChunkChoice> choice_;
  Worker* worker_ = nullptr;
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_BLOB_CHECK_H_
