// SPDX-License-Identifier: Apache-2.0
//
// Builds indexes and manifests field by field with the generated code, whether they make sense or
// not, so that each rule can be broken on its own. Uses nothing of lib/format.
#ifndef SEALPOINT_TESTS_SUPPORT_CONTAINER_HOSTILE_INDEX_H_
#define SEALPOINT_TESTS_SUPPORT_CONTAINER_HOSTILE_INDEX_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/index_generated.h"
#include "sealpoint/bytes.h"

namespace sealpoint::testing {

struct HostileRef {
  std::uint32_t blob = 0;
  std::uint32_t first_record = 0;
};

struct HostileGrid {
  std::vector<std::uint64_t> cuts;
  std::vector<std::uint32_t> cut_counts;
  std::optional<std::vector<std::uint32_t>> run_cut_counts;
  std::optional<std::vector<std::uint64_t>> run_cuts;
};

struct HostileBoxes {
  std::vector<std::uint64_t> boxes;
  std::optional<std::vector<std::uint64_t>> runs;
};

struct HostileTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::optional<HostileGrid> grid;
  std::optional<HostileBoxes> boxes;
  std::vector<HostileRef> shards;
  std::uint16_t dtype = 12;
  std::uint16_t element_size = 4;
  std::uint8_t chunk_size_log2 = 12;
  std::vector<std::string> placement;
  std::optional<std::array<std::uint64_t, 2>> fingerprint;
  std::optional<std::string> attributes;
};

struct HostileObject {
  std::string name;
  std::string media_type = "text/plain";
  std::uint64_t size = 0;
  HostileRef shard;
  std::uint8_t chunk_size_log2 = 12;
};

struct HostileBlob {
  std::uint8_t id = 1;  // the first byte of the id; the others are zero
  std::uint64_t file_size = 8192;
  std::uint64_t table_offset = 4096;
  std::uint32_t record_count = 0;
  std::uint32_t shard_count = 0;
};

struct HostileBase {
  std::array<std::uint8_t, 16> attempt{};
  std::array<std::uint8_t, 16> index_digest{};
  std::uint64_t step = 0;
  std::uint32_t depth = 1;
};

// A table that gets one field more than the schema has.
enum class UnknownField : std::uint8_t {
  kNone,
  kRoot,
  kTensor,
  kGrid,
  kBoxList,
  kObject,
  kBlob,
  kMeshAxis,
  kProvenance
};

struct HostileMetadata {
  std::vector<HostileTensor> tensors;
  std::vector<HostileObject> objects;
  std::vector<HostileBlob> blobs;
  std::uint16_t digest_algorithm = 1;
  std::uint64_t raw_bytes = 0;
  std::vector<std::pair<std::string, std::uint32_t>> mesh;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<UnknownField> unknown_fields;
  std::optional<HostileBase> base;
  std::optional<std::string> attributes;
};

Bytes EncodeHostileIndex(const HostileMetadata& metadata);
Bytes EncodeHostileManifest(const HostileMetadata& metadata);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CONTAINER_HOSTILE_INDEX_H_
