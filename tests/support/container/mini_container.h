// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CONTAINER_MINI_CONTAINER_H_
#define SEALPOINT_TESTS_SUPPORT_CONTAINER_MINI_CONTAINER_H_

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/format/chunk_table.h"
#include "lib/format/marker.h"
#include "lib/format/trailer.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/attributes.h"
#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/id.h"
#include "sealpoint/region.h"
#include "sealpoint/storage.h"
#include "tests/support/container/noise.h"

// Whole checkpoints as bytes, made straight from the encoders of lib/format without the writer, so
// that a test can damage each part and still have correct digests around it. Aborts if a part
// cannot be encoded, which is a bug of the test.

namespace sealpoint::testing {

// A region of a tensor in one blob. `bytes` are the region's elements in run order.
struct MiniShard {
  Region region;
  Bytes bytes;
  int blob = 0;
};

struct MiniTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint32_t element_size = 0;  // 0: the dtype's own
  std::uint64_t chunk_size = 4096;
  Codec codec = Codec::kNone;
  std::vector<std::string> placement;
  Attributes attributes{};
  std::vector<MiniShard> shards;
};

struct MiniObject {
  std::string name;
  Bytes bytes;
  std::string media_type = "application/octet-stream";
  std::uint64_t chunk_size = 4096;
  Codec codec = Codec::kNone;
  int blob = 0;
};

// Hooks that change parts while they are made; each may be empty. Blobs are identified by the
// numbers that the shards gave.
struct MiniHooks {
  // Called before encoding. What is made later (digests, pins) is made from the changed value.
  std::function<void(int blob, internal::format::FileHeader&)> blob_header;
  std::function<void(int blob, Bytes& chunk_area)> chunk_area;  // the file's first bytes
  std::function<void(int blob, std::vector<internal::format::ChunkRecord>&)> records;
  std::function<void(int blob, Bytes&)> record_bytes;  // encoded; group digests follow
  std::function<void(int blob, Bytes&)> group_list;    // its digest follows
  // Change the fingerprint of a part of a tensor, in manifest and index or in the manifest alone.
  std::function<void(const std::string& tensor, Fingerprint&)> fingerprint;
  std::function<void(const std::string& tensor, Fingerprint&)> stored_fingerprint;
  std::function<void(int blob, Bytes&)> manifest_bytes;  // as stored; the index is of the good one
  std::function<void(int blob, internal::format::Trailer&)> trailer;
  std::function<void(int blob, Bytes&)> trailer_bytes;  // sealed; what it pins follows
  std::function<void(int blob, internal::metadata::BlobPin&)> pin;
  std::function<void(internal::format::FileHeader&)> index_header;
  std::function<void(Bytes&)> index_bytes;  // the FlatBuffer; the marker pins the changed one
  std::function<void(internal::format::Marker&)> marker;
};

struct MiniSpec {
  std::vector<MiniTensor> tensors;
  std::vector<MiniObject> objects;
  AttemptId attempt = MakeId(0xa7);
  AttemptId parent;
  std::uint64_t sequence = 1;
  std::uint64_t step = 7;
  std::uint64_t created_unix_ns = 1;
  std::vector<std::pair<std::string, std::uint32_t>> mesh;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::optional<BaseRef> base{};  // of a delta; no chunk is stored as changes
  Attributes attributes{};
  bool has_fingerprints = false;  // a hook may clear the bit of a blob, which then has none
  MiniHooks hooks;

  // An id whose bytes are all `value`.
  template <std::derived_from<Id128> T = AttemptId>
  static T MakeId(std::uint8_t value) {
    T id;
    id.bytes.fill(std::byte{value});
    return id;
  }
};

struct MiniBlob {
  int number = 0;  // as the shards gave it
  BlobId id;
  std::string name;  // of its file
  internal::format::BlobSections sections;
  std::uint64_t chunks_end = 0;
  std::vector<internal::format::ChunkRecord> records;
};

struct MiniContainer {
  AttemptId attempt;
  std::map<std::string, Bytes> files;  // by name: COMMIT, the index, the blobs
  std::map<int, MiniBlob> blobs;       // ascending ids
  std::string index_name;

  Bytes& marker() { return files.at("COMMIT"); }
  Bytes& index() { return files.at(index_name); }
  Bytes& blob(int number) { return files.at(blobs.at(number).name); }
};

MiniContainer BuildMini(const MiniSpec& spec);
// One tensor "w" of five bytes that depend on the attempt; step 100 + sequence. The ids are
// MiniSpec::MakeId of these numbers; no parent if it is 0.
MiniContainer BuildInSeries(std::uint8_t attempt, std::uint8_t parent, std::uint64_t sequence);

// The marker of a directory that was this attempt and will never be a checkpoint.
Bytes VoidMarker(std::uint8_t attempt);

// Makes the directory and its files. Aborts if a file is there already.
void StoreFiles(Storage& storage, const std::string& directory,
                const std::map<std::string, Bytes>& files);
// Replaces one file, or removes it if `bytes` is null.
void ReplaceFile(Storage& storage, const std::string& directory, const std::string& name,
                 const Bytes* bytes);

// Elements of a region of a dense row-major tensor, in run order: the definition, row by row.
Bytes ExtractRegion(const Bytes& tensor, const Shape& shape, std::uint32_t element_size,
                    const Region& region);
// A tensor of these bytes, cut into regions; region i goes to blob `blobs[i]` (all to 0 if
// `blobs` is empty).
MiniTensor CutTensor(std::string name, DType dtype, const Shape& shape, const Bytes& bytes,
                     const std::vector<Region>& regions, const std::vector<int>& blobs = {});

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CONTAINER_MINI_CONTAINER_H_
