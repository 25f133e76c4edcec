// SPDX-License-Identifier: Apache-2.0
//
// The only definition of the field positions of the fixed structures: spec/container.md sections 2,
// 3 and 5. All code that encodes, decodes, verifies or damages a header, marker, trailer or record
// takes the offsets from here. tests/unit/format repeats them as numbers, for comparison.
#ifndef SEALPOINT_LIB_FORMAT_FIELDS_H_
#define SEALPOINT_LIB_FORMAT_FIELDS_H_

#include <cstddef>
#include <initializer_list>

#include "lib/format/constants.h"

namespace sealpoint::internal::format {

struct Field {
  std::size_t at = 0;  // offset from the begin of the structure
  std::size_t size = 0;
  constexpr std::size_t end() const { return at + size; }
};

// True if the fields fill [begin, end) in this order, without gap or overlap.
constexpr bool FieldsFill(std::size_t begin, std::size_t end, std::initializer_list<Field> fields) {
  for (const Field& field : fields) {
    if (field.at != begin) return false;
    begin = field.end();
  }
  return begin == end;
}

// The common file header.
struct HeaderFields {
  static constexpr Field kMagic = {0, 8};
  static constexpr Field kKind = {8, 4};
  static constexpr Field kVersion = {12, 4};
  static constexpr Field kHeaderSize = {16, 4};
  static constexpr Field kReserved = {20, 4};
  static constexpr Field kCompat = {24, 8};
  static constexpr Field kIncompat = {32, 8};
  static constexpr Field kDigest = {40, 16};
  static constexpr Field kId = {56, 16};
  static constexpr Field kAttempt = {72, 16};
  static constexpr Field kStep = {88, 8};
  static constexpr Field kTailReserved = {96, 32};
};
static_assert(FieldsFill(0, kHeaderSize,
                         {HeaderFields::kMagic, HeaderFields::kKind, HeaderFields::kVersion,
                          HeaderFields::kHeaderSize, HeaderFields::kReserved, HeaderFields::kCompat,
                          HeaderFields::kIncompat, HeaderFields::kDigest, HeaderFields::kId,
                          HeaderFields::kAttempt, HeaderFields::kStep,
                          HeaderFields::kTailReserved}));
static_assert(HeaderFields::kDigest.end() == kFrozenPrefixSize);

// Fields of a marker after the common header; offsets from the beginning of the file.
struct MarkerFields {
  static constexpr Field kKind = {128, 4};
  static constexpr Field kReserved = {132, 4};
  static constexpr Field kParent = {136, 16};
  static constexpr Field kSequence = {152, 8};
  static constexpr Field kIndexSize = {160, 8};
  static constexpr Field kIndexDigest = {168, 16};
  static constexpr Field kBlobCount = {184, 8};
  static constexpr Field kTotalBytes = {192, 8};
  static constexpr Field kTailReserved = {200, 56};
  static constexpr Field kExtension = {256, 256};
};
static_assert(FieldsFill(kHeaderSize, kMarkerSize,
                         {MarkerFields::kKind, MarkerFields::kReserved, MarkerFields::kParent,
                          MarkerFields::kSequence, MarkerFields::kIndexSize,
                          MarkerFields::kIndexDigest, MarkerFields::kBlobCount,
                          MarkerFields::kTotalBytes, MarkerFields::kTailReserved,
                          MarkerFields::kExtension}));

// The trailer of a blob.
struct TrailerFields {
  static constexpr Field kMagic = {0, 8};
  static constexpr Field kTrailerSize = {8, 4};
  static constexpr Field kRecordSize = {12, 4};
  static constexpr Field kBlob = {16, 16};
  static constexpr Field kFileSize = {32, 8};
  static constexpr Field kChunksEnd = {40, 8};
  static constexpr Field kTable = {48, 8};
  static constexpr Field kRecordCount = {56, 4};
  static constexpr Field kShardCount = {60, 4};
  static constexpr Field kRecords = {64, 8};
  static constexpr Field kManifest = {72, 8};
  static constexpr Field kManifestSize = {80, 8};
  static constexpr Field kRawBytes = {88, 8};
  static constexpr Field kGroupListDigest = {96, 16};
  static constexpr Field kManifestDigest = {112, 16};
  static constexpr Field kHeaderDigest = {128, 16};
  static constexpr Field kAlgorithm = {144, 2};
  static constexpr Field kReserved = {146, 78};
  static constexpr Field kExtension = {224, 16};
  static constexpr Field kDigest = {240, 16};
};
static_assert(FieldsFill(
    0, kTrailerSize,
    {TrailerFields::kMagic,        TrailerFields::kTrailerSize,     TrailerFields::kRecordSize,
     TrailerFields::kBlob,         TrailerFields::kFileSize,        TrailerFields::kChunksEnd,
     TrailerFields::kTable,        TrailerFields::kRecordCount,     TrailerFields::kShardCount,
     TrailerFields::kRecords,      TrailerFields::kManifest,        TrailerFields::kManifestSize,
     TrailerFields::kRawBytes,     TrailerFields::kGroupListDigest, TrailerFields::kManifestDigest,
     TrailerFields::kHeaderDigest, TrailerFields::kAlgorithm,       TrailerFields::kReserved,
     TrailerFields::kExtension,    TrailerFields::kDigest}));

// A chunk record.
struct RecordFields {
  static constexpr Field kOffset = {0, 8};
  static constexpr Field kStoredSize = {8, 4};
  static constexpr Field kRawSize = {12, 4};
  static constexpr Field kShard = {16, 4};
  static constexpr Field kChunk = {20, 4};
  static constexpr Field kCodec = {24, 2};
  static constexpr Field kReserved = {26, 2};
  static constexpr Field kSourceBlob = {28, 4};
  static constexpr Field kRawDigest = {32, 16};
  static constexpr Field kStoredDigest = {48, 16};
};
static_assert(FieldsFill(0, kRecordSize,
                         {RecordFields::kOffset, RecordFields::kStoredSize, RecordFields::kRawSize,
                          RecordFields::kShard, RecordFields::kChunk, RecordFields::kCodec,
                          RecordFields::kReserved, RecordFields::kSourceBlob,
                          RecordFields::kRawDigest, RecordFields::kStoredDigest}));

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_FIELDS_H_
