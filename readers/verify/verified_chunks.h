// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_VERIFIED_CHUNKS_H_
#define SEALPOINT_READERS_VERIFY_VERIFIED_CHUNKS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "lib/metadata/metadata.h"
#include "readers/verify/byte_ranges.h"
#include "sealpoint/id.h"
#include "sealpoint/storage.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal::verify {

// A checkpoint in one place. A copy has the same attempt and marker, and another path.
struct CheckpointKey {
  Digest path;
  AttemptId attempt;
  Digest marker;
  friend auto operator<=>(const CheckpointKey&, const CheckpointKey&) = default;
};

// Identity of a file, independent of its names. All zero if the storage does not know it.
struct FileKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool is_known() const { return inode != 0; }
  friend auto operator<=>(const FileKey&, const FileKey&) = default;
};
FileKey KeyOf(const ReadableFile& file);

// A blob of a checkpoint, as the index pins it.
struct BlobKey {
  CheckpointKey checkpoint;
  metadata::BlobPin pin;
  FileKey file;
};

class VerifiedChunksImpl final : public VerifiedChunks {
 public:
  // As many ranges of bytes as are remembered.
  static constexpr std::size_t kRangesMax = std::size_t{1} << 18;

  explicit VerifiedChunksImpl(std::uint64_t begun_unix_s) : begun_unix_s_(begun_unix_s) {}

  std::string Encode() const override;
  std::uint64_t begun_unix_s() const override { return begun_unix_s_; }

  // Ranges found intact in this blob, or in the same file of another checkpoint.
  ByteRanges KnownOf(const BlobKey& blob);
  void Add(const BlobKey& blob, std::uint64_t begin, std::uint64_t end);
  // True if this was called with the file before. False for an unknown one.
  bool SeesAgain(const FileKey& file);

 private:
  friend class StateParser;
  struct KnownBlob {
    std::uint64_t inode = 0;  // without the device, because its number may change at a reboot
    ByteRanges good;
  };
  struct KnownFile {
    metadata::BlobPin pin;  // content at that time
    ByteRanges good;
  };
  void AddTo(ByteRanges& ranges, std::uint64_t begin, std::uint64_t end);
  ByteRanges& GoodOf(const BlobKey& blob);

  const std::uint64_t begun_unix_s_;
  mutable std::mutex mutex_;
  std::map<CheckpointKey, std::map<BlobId, KnownBlob>> checkpoints_;
  std::map<FileKey, KnownFile> files_;
  std::set<FileKey> seen_;
  std::size_t range_count_ = 0;
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_VERIFIED_CHUNKS_H_
