// SPDX-License-Identifier: Apache-2.0
//
// The map of a good checkpoint, made from the offsets of spec/container.md and not with the
// library's own decoders.
#ifndef SEALPOINT_TESTS_SUPPORT_DAMAGE_AREAS_H_
#define SEALPOINT_TESTS_SUPPORT_DAMAGE_AREAS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "tests/support/damage/containers.h"

namespace sealpoint::testing {

enum class AreaKind : std::uint8_t {
  kHeader,
  kPlainChunk,
  kCodedChunk,
  kChunkPadding,  // before a chunk
  kAreaPadding,   // after the last chunk
  kGroupList,
  kGroupListPadding,  // after the group list
  kGroup,             // of 64 records
  kManifest,
  kManifestPadding,  // after the manifest
  kTrailer
};

// Bytes [begin, end) of a blob. Empty areas are left out.
struct BlobArea {
  AreaKind kind{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t record = 0;  // of a chunk, or of the chunk after the padding
  std::uint32_t group = 0;   // of that record; or the group itself
  std::string owner{};       // tensor or object of a chunk
  bool is_object = false;    // what the owner is
};

// A stored chunk and its content.
struct ChunkOf {
  std::string owner{};
  bool is_object = false;
  Region elements{};  // of a tensor: a run of the shard's box
};

// In the order of the file, without holes.
std::vector<BlobArea> FindBlobAreas(const Bytes& blob);
// The chunks of each blob in the order of their records, by file name.
std::map<std::string, std::vector<ChunkOf>> FindChunkOwners(const DamageCase& one);

// The first of the rules R-HDR-01 to R-HDR-07 and R-HDR-10 that these bytes of a file break;
// nothing if the header is right in itself. `kind` as in the header: 1 blob, 2 index, 3 marker.
std::optional<std::string_view> FindHeaderFault(ByteSpan file, std::uint32_t kind);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DAMAGE_AREAS_H_
