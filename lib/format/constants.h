// SPDX-License-Identifier: Apache-2.0
//
// Shared by the writer and the readers. Every value here is frozen in the file format; see
// spec/container.md for what each one means.
#ifndef SEALPOINT_LIB_FORMAT_CONSTANTS_H_
#define SEALPOINT_LIB_FORMAT_CONSTANTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/id.h"

namespace sealpoint::internal::format {

inline constexpr std::uint32_t kFormatVersion = 1;
// The draft, which ended with 1.0.0-rc1. ckpt copy alone reads it (lib/repack/draft.h).
inline constexpr std::uint32_t kDraftVersion = 0;
// Compat bits (spec/registries.md).
inline constexpr std::uint64_t kFingerprintFeature = 1;
inline constexpr std::uint64_t kAttributeFeature = 2;
inline constexpr std::uint64_t kKnownCompatFeatures = kFingerprintFeature | kAttributeFeature;
inline constexpr std::uint64_t kAttributesTotalMaxBytes = std::uint64_t{1} << 26;  // R-ATT-01
// Incompat bits: other codecs, and deltas, which always have both.
inline constexpr std::uint64_t kOtherCodecsFeature = 0b0100;
inline constexpr std::uint64_t kDeltaFeature = 0b1000;
inline constexpr std::uint64_t kDeltaFeatures = kDeltaFeature | kOtherCodecsFeature;
inline constexpr std::uint64_t kKnownIncompatFeatures = kDeltaFeatures;
inline constexpr std::uint32_t kDeltaDepthMax = 64;  // R-DLT-02

inline constexpr std::size_t kFrozenPrefixSize = 56;
inline constexpr std::size_t kHeaderSize = 128;
inline constexpr std::size_t kHeaderSizeMax = 4096;
inline constexpr std::size_t kMarkerSize = 512;
inline constexpr std::size_t kTrailerSize = 256;
inline constexpr std::size_t kRecordSize = 64;
inline constexpr std::uint32_t kRecordsPerGroup = 64;
inline constexpr std::uint64_t kRecordGroupSize = kRecordsPerGroup * kRecordSize;
inline constexpr std::size_t kDigestSize = 16;

inline constexpr std::uint64_t kFileAlignment = 4096;        // a blob's length
inline constexpr std::uint64_t kSectionAlignment = 64;       // group list, records, manifest
inline constexpr std::uint64_t kLargeShardSize = 65536;      // raw bytes; from here on a shard
inline constexpr std::uint64_t kLargeShardAlignment = 4096;  // begins at a page boundary
inline constexpr std::uint64_t kSmallShardAlignment = 64;
// Offsets in a FlatBuffer are 32 bits wide, and signed in some places.
inline constexpr std::uint64_t kFlatBufferSizeMax = (std::uint64_t{1} << 31) - 1;

enum class FileKind : std::uint32_t { kBlob = 1, kIndex = 2, kMarker = 3 };

inline constexpr std::string_view kMarkerName = "COMMIT";
inline constexpr std::string_view kKeepName = "KEEP";
// Content of a `KEEP` that a committer made for deltas in the same series (spec/delta.md section
// 4).
inline constexpr std::string_view kKeepOfDeltas = "delta\n";
inline constexpr std::string_view kIndexSuffix = ".index";
inline constexpr std::string_view kBlobSuffix = ".blob";
inline constexpr std::string_view kUnpublishedSuffix = ".commit";
inline constexpr std::string_view kProbeInfix = ".probe";

std::string IndexName(const AttemptId& attempt);
std::string BlobName(const BlobId& blob);
std::string UnpublishedMarkerName(const Id128& id);
std::string ProbeName(const Id128& id);

// The name that a saver gives to the directory of an attempt in a series (spec/series.md section
// 2).
std::string DirectoryName(std::uint64_t step, const AttemptId& attempt);
inline constexpr std::string_view kDirectoryPrefix = "step-";
inline constexpr std::size_t kStepDigitsMin = 12;
inline constexpr std::size_t kAttemptDigits = 8;

// Kind of an entry of a checkpoint directory, according to its name.
enum class NameKind : std::uint8_t {
  kMarker,
  kIndex,
  kBlob,
  kUnpublishedMarker,
  kProbe,
  kReserved,  // a kind of file that this version does not know; never opened
  kKeep,
  kForeign
};
struct ParsedName {
  NameKind kind = NameKind::kForeign;
  Id128 id;  // of kIndex, kBlob, kUnpublishedMarker, kProbe, kReserved
};
ParsedName ParseName(std::string_view name);

// Alignment of the start of a shard of `raw_size` bytes: 4096 from kLargeShardSize on, else 64.
constexpr std::uint64_t ShardAlignment(std::uint64_t raw_size) {
  return raw_size >= kLargeShardSize ? kLargeShardAlignment : kSmallShardAlignment;
}

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_CONSTANTS_H_
