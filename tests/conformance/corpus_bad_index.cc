// SPDX-License-Identifier: Apache-2.0
//
// Indexes and manifests that are right in all digests and break one rule of meaning each.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "lib/format/constants.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/conformance/transcribe.h"

namespace sealpoint::testing {
namespace {

using Damage = std::function<void(HostileMetadata&)>;

// Positions in the index of BaseSpec.
enum : std::size_t { kBricks, kEmpty, kGrid, kRuns, kScalar };
enum : std::size_t { kArgs, kNothing, kRng };

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

// BaseSpec with another index, which the marker pins.
void AddIndex(Corpus& corpus, std::string name, const Damage& damage) {
  AddChanged(
      corpus, std::move(name), "index",
      [&](Bytes& file) {
        const Bytes good(file.begin() + internal::format::kHeaderSize, file.end());
        HostileMetadata metadata = TranscribeIndex(good);
        damage(metadata);
        Bytes buffer = EncodeHostileIndex(metadata);
        CopyPins(good, buffer);
        file.resize(internal::format::kHeaderSize);
        file.insert(file.end(), buffer.begin(), buffer.end());
      },
      kSealIndex | kSealMarker);
}

// BaseSpec with another manifest of blob 0, which its trailer, and thereby the index, pins.
void AddManifest(Corpus& corpus, std::string name, const Damage& damage) {
  MiniSpec spec = BaseSpec();
  spec.hooks.manifest_bytes = [damage](int blob, Bytes& bytes) {
    if (blob != 0) return;
    HostileMetadata metadata = TranscribeManifest(bytes);
    damage(metadata);
    bytes = EncodeHostileManifest(metadata);
  };
  corpus.Add(std::move(name), spec);
}

void AddTexts(Corpus& corpus) {
  AddIndex(corpus, "bad-R-IDX-05-name_not_utf8",
           [](HostileMetadata& c) { c.tensors[kScalar].name = "scalar\xff"; });
  AddIndex(corpus, "bad-R-IDX-05-control_character_in_media_type",
           [](HostileMetadata& c) { c.objects[kRng].media_type = "text\n"; });
  AddIndex(corpus, "bad-R-IDX-05-empty_mesh_axis",
           [](HostileMetadata& c) { c.mesh[0].first.clear(); });
  AddIndex(corpus, "bad-R-IDX-05-long_name",
           [](HostileMetadata& c) { c.tensors[kScalar].name = std::string(1025, 's'); });
  AddIndex(corpus, "bad-R-IDX-05-provenance_value_not_utf8",
           [](HostileMetadata& c) { c.provenance[0].second = "ada\xff"; });
  AddIndex(corpus, "bad-R-IDX-06-duplicate_name",
           [](HostileMetadata& c) { c.tensors[kRuns].name = c.tensors[kGrid].name; });
  AddIndex(corpus, "bad-R-IDX-06-objects_not_sorted",
           [](HostileMetadata& c) { std::swap(c.objects[kArgs], c.objects[kNothing]); });
}

void AddTypes(Corpus& corpus) {
  AddIndex(corpus, "bad-R-IDX-09-element_size",
           [](HostileMetadata& c) { c.tensors[kGrid].element_size = 8; });
  AddIndex(corpus, "bad-R-IDX-24-elements_of_3_bytes", [](HostileMetadata& c) {
    c.tensors[kGrid].dtype = 40000;
    c.tensors[kGrid].element_size = 3;
  });
  AddIndex(corpus, "bad-R-IDX-24-elements_of_512_bytes", [](HostileMetadata& c) {
    c.tensors[kGrid].dtype = 40000;
    c.tensors[kGrid].element_size = 512;
  });
  AddManifest(corpus, "bad-R-IDX-24-elements_of_18_bytes_in_a_manifest", [](HostileMetadata& c) {
    c.tensors[kGrid].dtype = 40000;
    c.tensors[kGrid].element_size = 18;
  });
  AddIndex(corpus, "bad-R-IDX-09-no_dtype", [](HostileMetadata& c) { c.tensors[kGrid].dtype = 0; });
  AddIndex(corpus, "bad-R-IDX-10-chunk_size",
           [](HostileMetadata& c) { c.tensors[kGrid].chunk_size_log2 = 11; });
  AddIndex(corpus, "bad-R-IDX-10-chunk_size_of_object",
           [](HostileMetadata& c) { c.objects[kRng].chunk_size_log2 = 28; });
  AddIndex(corpus, "bad-R-IDX-11-overflow",
           [](HostileMetadata& c) { c.tensors[kGrid].shape = {kHuge, 2}; });
  AddIndex(corpus, "bad-R-IDX-11-dimensions",
           [](HostileMetadata& c) { c.tensors[kEmpty].shape.assign(33, 0); });
}

void AddGeometry(Corpus& corpus) {
  AddIndex(corpus, "bad-R-IDX-12-two_geometries",
           [](HostileMetadata& c) { c.tensors[kGrid].boxes = HostileBoxes{}; });
  AddIndex(corpus, "bad-R-IDX-12-no_geometry",
           [](HostileMetadata& c) { c.tensors[kGrid].grid.reset(); });
  AddIndex(corpus, "bad-R-IDX-12-geometry_of_an_empty_tensor", [](HostileMetadata& c) {
    c.tensors[kEmpty].grid = HostileGrid{.cuts = {}, .cut_counts = {0, 0}};
  });
  AddIndex(corpus, "bad-R-IDX-13-box_list_of_a_grid", [](HostileMetadata& c) {
    c.tensors[kGrid].grid.reset();
    c.tensors[kGrid].boxes = HostileBoxes{.boxes = {0, 0, 2, 6, 2, 0, 2, 6}};
  });
  AddManifest(corpus, "bad-R-IDX-13-grid_in_a_manifest", [](HostileMetadata& c) {
    c.tensors[kRuns].boxes.reset();
    c.tensors[kRuns].grid = HostileGrid{.cuts = {5}, .cut_counts = {1}};
  });
  AddIndex(corpus, "bad-R-IDX-14-grid_cuts",
           [](HostileMetadata& c) { c.tensors[kGrid].grid->cuts = {4}; });
  AddIndex(corpus, "bad-R-IDX-14-more_cells_than_shards", [](HostileMetadata& c) {
    c.tensors[kGrid].grid = HostileGrid{.cuts = {2, 3}, .cut_counts = {1, 1}};
  });
  AddIndex(corpus, "bad-R-IDX-15-run_cuts",
           [](HostileMetadata& c) { c.tensors[kRuns].grid->run_cuts = {{5}}; });
  AddIndex(corpus, "bad-R-IDX-15-run_counts_without_cuts",
           [](HostileMetadata& c) { c.tensors[kRuns].grid->run_cuts.reset(); });
  AddIndex(corpus, "bad-R-IDX-16-box_outside",
           [](HostileMetadata& c) { c.tensors[kBricks].boxes->boxes[15] = 2; });
  AddIndex(corpus, "bad-R-IDX-16-offset_that_wraps",
           [](HostileMetadata& c) { c.tensors[kBricks].boxes->boxes[12] = ~std::uint64_t{0}; });
  AddIndex(corpus, "bad-R-IDX-17-empty_run",
           [](HostileMetadata& c) { c.tensors[kBricks].boxes->runs = {{0, 2, 0, 6, 0, 6, 1, 1}}; });
  AddIndex(corpus, "bad-R-IDX-18-overlap",
           [](HostileMetadata& c) { c.tensors[kBricks].boxes->boxes[3] = 2; });
  AddIndex(corpus, "bad-R-IDX-18-hole",
           [](HostileMetadata& c) { c.tensors[kBricks].boxes->boxes[7] = 2; });
}

void AddPlaces(Corpus& corpus) {
  AddIndex(corpus, "bad-R-IDX-19-blob_number",
           [](HostileMetadata& c) { c.tensors[kScalar].shards[0].blob = 2; });
  AddIndex(corpus, "bad-R-IDX-20-record_twice",
           [](HostileMetadata& c) { c.tensors[kGrid].shards[0] = c.tensors[kBricks].shards[0]; });
  AddIndex(corpus, "bad-R-IDX-20-record_beyond_the_table",
           [](HostileMetadata& c) { c.tensors[kGrid].shards[0].first_record = ~0u; });
  AddIndex(corpus, "bad-R-IDX-21-table_offset",
           [](HostileMetadata& c) { c.blobs[0].table_offset = c.blobs[0].file_size - 256; });
  AddIndex(corpus, "bad-R-IDX-21-length_of_no_page",
           [](HostileMetadata& c) { c.blobs[0].file_size += 256; });
  MiniSpec empty;
  empty.tensors = {{.name = "w", .dtype = DType::kF32, .shape = {3, 0}}};
  empty.hooks.index_bytes = [](Bytes& buffer) {
    const Bytes good = buffer;
    HostileMetadata metadata = TranscribeIndex(good);
    metadata.blobs[0].table_offset += 64;
    buffer = EncodeHostileIndex(metadata);
    CopyPins(good, buffer);
  };
  corpus.Add("bad-R-IDX-21-table_of_no_record", empty);
  AddIndex(corpus, "bad-R-IDX-21-shard_count",
           [](HostileMetadata& c) { ++c.blobs[0].shard_count; });
  AddIndex(corpus, "bad-R-IDX-22-empty_object",
           [](HostileMetadata& c) { c.objects[kNothing].shard = {0, 1}; });
  AddIndex(corpus, "bad-R-IDX-23-raw_bytes", [](HostileMetadata& c) { ++c.raw_bytes; });
}

}  // namespace

void AddBadIndexes(Corpus& corpus) {
  // The way in which the others are damaged, without damage.
  AddIndex(corpus, "good-index_by_hand", [](HostileMetadata&) {});
  AddManifest(corpus, "good-manifest_by_hand", [](HostileMetadata&) {});

  AddChanged(corpus, "bad-R-IDX-02-buffer", "index",
             SetField(internal::format::kHeaderSize, std::uint32_t{0xfffffff0}),
             kSealIndex | kSealMarker);
  AddChanged(corpus, "bad-R-IDX-02-identifier", "index",
             FlipByte(internal::format::kHeaderSize + 4), kSealIndex | kSealMarker);
  AddChanged(
      corpus, "bad-R-IDX-02-no_buffer", "index",
      [](Bytes& file) { file.resize(internal::format::kHeaderSize); }, kSealIndex | kSealMarker);
  AddIndex(corpus, "bad-R-IDX-03-unknown_field",
           [](HostileMetadata& c) { c.unknown_fields = {UnknownField::kTensor}; });
  AddManifest(corpus, "bad-R-IDX-03-unknown_field_of_manifest",
              [](HostileMetadata& c) { c.unknown_fields = {UnknownField::kRoot}; });
  AddIndex(corpus, "bad-R-IDX-04-blob_length",
           [](HostileMetadata& c) { c.blobs[0].file_size = (std::uint64_t{1} << 50) + 4096; });
  AddTexts(corpus);
  AddIndex(corpus, "bad-R-IDX-07-blob_order",
           [](HostileMetadata& c) { std::swap(c.blobs[0], c.blobs[1]); });
  AddIndex(corpus, "bad-R-IDX-07-blob_id_zero", [](HostileMetadata& c) { c.blobs[0].id = 0; });
  AddIndex(corpus, "bad-R-IDX-08-digest_algorithm",
           [](HostileMetadata& c) { c.digest_algorithm = 2; });
  AddTypes(corpus);
  AddGeometry(corpus);
  AddPlaces(corpus);
  AddManifest(corpus, "bad-R-BLB-07-region_of_manifest", [](HostileMetadata& c) {
    c.tensors[kGrid].boxes = HostileBoxes{.boxes = {1, 0, 2, 6}};
  });
  AddManifest(corpus, "bad-R-BLB-07-dtype_of_manifest",
              [](HostileMetadata& c) { c.tensors[kGrid].dtype = 4; });
  AddManifest(corpus, "bad-R-BLB-07-tensor_missing_in_manifest",
              [](HostileMetadata& c) { c.tensors.erase(c.tensors.begin() + kEmpty); });
}

}  // namespace sealpoint::testing
