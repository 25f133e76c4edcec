// SPDX-License-Identifier: Apache-2.0
//
// Random checkpoints: what was declared is what the index gives back, however the shards are spread
// over blobs and in whatever order the blobs come.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/layout/region_algebra.h"
#include "lib/metadata/merge_manifests.h"
#include "lib/metadata/metadata.h"
#include "tests/support/container/encode_manifest.h"

namespace sealpoint::internal {
namespace {

using sealpoint::testing::EncodeManifest;
using sealpoint::testing::ManifestShard;
using sealpoint::testing::ManifestTensor;
constexpr std::uint64_t kChunkSize = 4096;

struct Model {
  std::vector<ManifestTensor> tensors;  // with all shards
  std::vector<metadata::ManifestObject> objects;
};

std::uint64_t Below(std::uint64_t bound) { return *rc::gen::inRange<std::uint64_t>(0, bound); }

// Interior cuts of [0, size), ascending.
std::vector<std::uint64_t> RandomCuts(std::uint64_t size, std::uint64_t count_max) {
  std::set<std::uint64_t> cuts;
  if (size < 2) return {};
  const std::uint64_t count = Below(count_max + 1);
  for (std::uint64_t i = 0; i < count; ++i) cuts.insert(1 + Below(size - 1));
  return {cuts.begin(), cuts.end()};
}

// Halves boxes at random places: an exact tiling that is mostly no grid.
std::vector<Region> RandomTiling(const Shape& shape) {
  std::vector<Box> boxes{Box{.offset = Shape(shape.size(), 0), .extent = shape}};
  const std::uint64_t splits = shape.empty() ? 0 : Below(7);
  for (std::uint64_t i = 0; i < splits; ++i) {
    const std::size_t victim = Below(boxes.size());
    const std::size_t d = Below(shape.size());
    if (boxes[victim].extent[d] < 2) continue;
    const std::uint64_t at = 1 + Below(boxes[victim].extent[d] - 1);
    Box rest = boxes[victim];
    rest.offset[d] += at;
    rest.extent[d] -= at;
    boxes[victim].extent[d] = at;
    boxes.push_back(rest);
  }
  std::vector<Region> regions;
  for (const Box& box : boxes) {
    const std::uint64_t elements = layout::BoxElementCount(box);
    std::uint64_t begin = 0;
    for (const std::uint64_t cut : RandomCuts(elements, Below(3) == 0 ? 2 : 0)) {
      regions.push_back(Region{box, Run{begin, cut}});
      begin = cut;
    }
    regions.push_back(Region{box, Run{begin, elements}});
  }
  return regions;
}

// The cells of a random grid.
std::vector<Region> RandomGridCells(const Shape& shape) {
  std::vector<Box> boxes{Box{}};
  for (const std::uint64_t extent : shape) {
    std::vector<std::uint64_t> cuts = RandomCuts(extent, 3);
    cuts.push_back(extent);
    std::vector<Box> longer;
    for (const Box& box : boxes) {
      std::uint64_t begin = 0;
      for (const std::uint64_t cut : cuts) {
        longer.push_back(box);
        longer.back().offset.push_back(begin);
        longer.back().extent.push_back(cut - begin);
        begin = cut;
      }
    }
    boxes = std::move(longer);
  }
  std::vector<Region> regions;
  for (const Box& box : boxes) regions.push_back(Region::Of(box));
  return regions;
}

ManifestTensor RandomTensor(std::string name) {
  const bool is_empty = Below(6) == 0;
  Shape shape;
  const std::uint64_t ndim = Below(4);
  for (std::uint64_t d = 0; d < ndim; ++d) shape.push_back(1 + Below(40));
  if (is_empty && !shape.empty()) shape[Below(shape.size())] = 0;
  ManifestTensor tensor{.name = std::move(name),
                        .dtype = DType::kF32,
                        .element_size = 4,
                        .chunk_size = kChunkSize,
                        .shape = shape};
  if (Below(2) == 0) tensor.placement = {"tensor: shard dim 0"};
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return tensor;
  for (Region& region : Below(2) == 0 ? RandomGridCells(shape) : RandomTiling(shape)) {
    tensor.shards.push_back({std::move(region), 0});
  }
  return tensor;
}

Model RandomModel() {
  Model model;
  const std::uint64_t tensors = Below(5);
  for (std::uint64_t i = 0; i < tensors; ++i) {
    model.tensors.push_back(RandomTensor("t" + std::to_string(i)));
  }
  const std::uint64_t objects = Below(4);
  for (std::uint64_t i = 0; i < objects; ++i) {
    model.objects.push_back({.name = "o" + std::to_string(i),
                             .media_type = "x/y",
                             .size = Below(3) == 0 ? 0 : 1 + Below(10000),
                             .chunk_size = kChunkSize});
  }
  return model;
}

// What one blob holds while shards are dealt out.
struct BlobDraft {
  std::vector<ManifestTensor> tensors;
  std::vector<metadata::ManifestObject> objects;
  std::uint32_t records = 0;
  std::uint32_t shards = 0;

  std::uint32_t TakeRecords(std::uint64_t raw_size) {
    const std::uint32_t first = records;
    records += static_cast<std::uint32_t>(metadata::ChunkCount(raw_size, kChunkSize));
    ++shards;
    return first;
  }
};

std::vector<BlobDraft> DealOut(const Model& model, std::size_t blob_count) {
  std::vector<BlobDraft> blobs(blob_count);
  for (const ManifestTensor& tensor : model.tensors) {
    ManifestTensor bare = tensor;
    bare.shards.clear();
    std::vector<ManifestTensor> parts(blob_count, bare);
    for (const ManifestShard& shard : tensor.shards) {
      const std::size_t blob = Below(blob_count);
      const std::uint32_t first = blobs[blob].TakeRecords(shard.region.element_count() * 4);
      parts[blob].shards.push_back({shard.region, first});
    }
    for (std::size_t blob = 0; blob < blob_count; ++blob) {
      const bool is_declared =
          tensor.shards.empty() ? blob == 0 || Below(2) == 0 : !parts[blob].shards.empty();
      if (is_declared) blobs[blob].tensors.push_back(parts[blob]);
    }
  }
  for (metadata::ManifestObject object : model.objects) {
    BlobDraft& blob = blobs[Below(blob_count)];
    if (object.size != 0) object.first_record = blob.TakeRecords(object.size);
    blob.objects.push_back(object);
  }
  return blobs;
}

struct Held {
  metadata::BlobPin pin;
  metadata::Metadata manifest;
};

Held Hold(const BlobDraft& draft, std::size_t number) {
  const auto bytes = std::make_shared<const Bytes>(EncodeManifest(draft.tensors, draft.objects));
  auto manifest = metadata::Metadata::DecodeManifest(
      bytes, ByteSpan(*bytes), {.record_count = draft.records, .shard_count = draft.shards},
      Limits{});
  if (!manifest.ok()) RC_FAIL(manifest.status().ToString());
  metadata::BlobPin pin{.file_size = 1 << 20,
                        .table_offset = draft.records == 0 ? format::kHeaderSize : 4096,
                        .record_count = draft.records,
                        .shard_count = draft.shards};
  pin.id.bytes[0] = static_cast<std::byte>(number + 1);
  return Held{.pin = pin, .manifest = std::move(manifest).value()};
}

Bytes Merge(const std::vector<Held>& blobs, const std::vector<std::size_t>& order) {
  std::vector<metadata::BlobContribution> contributions;
  for (const std::size_t i : order) contributions.push_back({blobs[i].pin, &blobs[i].manifest});
  const metadata::IndexAttributes facts{
      .created_unix_ns = 5, .mesh = {{"data", 2}}, .provenance = {{"a", "b"}}};
  auto bytes = metadata::EncodeIndex(contributions, facts, Limits{});
  if (!bytes.ok()) RC_FAIL(bytes.status().ToString());
  return std::move(bytes).value();
}

std::vector<std::size_t> Positions(std::size_t count) {
  std::vector<std::size_t> positions(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = i;
  return positions;
}

// The region and place of every shard, as the blob's manifest states it.
using Placed = std::vector<std::pair<Region, std::pair<std::uint32_t, std::uint32_t>>>;

Placed DeclaredShards(const std::vector<BlobDraft>& drafts, const std::string& name) {
  Placed placed;
  for (std::uint32_t blob = 0; blob < drafts.size(); ++blob) {
    for (const ManifestTensor& tensor : drafts[blob].tensors) {
      if (tensor.name != name) continue;
      for (const ManifestShard& shard : tensor.shards) {
        placed.push_back({shard.region, {blob, shard.first_record}});
      }
    }
  }
  std::sort(placed.begin(), placed.end());
  return placed;
}

Placed StoredShards(const metadata::TensorView& tensor) {
  Placed placed;
  const std::vector<Region> regions = tensor.regions();
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const metadata::ShardRef ref = tensor.shard_ref(i);
    placed.push_back({regions[i], {ref.blob, ref.first_record}});
  }
  std::sort(placed.begin(), placed.end());
  return placed;
}

RC_GTEST_PROP(ContentsRoundTrip, IndexHoldsWhatTheBlobsDeclare, ()) {
  const Model model = RandomModel();
  const auto drafts = DealOut(model, 1 + Below(4));
  std::vector<Held> blobs;
  for (std::size_t i = 0; i < drafts.size(); ++i) blobs.push_back(Hold(drafts[i], i));
  const auto bytes = std::make_shared<const Bytes>(Merge(blobs, Positions(blobs.size())));
  const auto decoded =
      metadata::Metadata::Decode(metadata::MetadataKind::kIndex, bytes, ByteSpan(*bytes), Limits{});
  if (!decoded.ok()) RC_FAIL(decoded.status().ToString());

  RC_ASSERT(decoded->tensor_count() == model.tensors.size());
  for (const ManifestTensor& tensor : model.tensors) {
    const metadata::TensorView view = decoded->tensor(decoded->FindTensor(tensor.name).value());
    RC_ASSERT(view.shape() == tensor.shape);
    RC_ASSERT(view.placement() == tensor.placement);
    RC_ASSERT(view.shard_count() == tensor.shards.size());
    RC_ASSERT(StoredShards(view) == DeclaredShards(drafts, tensor.name));
  }
  RC_ASSERT(decoded->object_count() == model.objects.size());
  for (const metadata::ManifestObject& object : model.objects) {
    const metadata::ObjectView view = decoded->object(decoded->FindObject(object.name).value());
    RC_ASSERT(view.size() == object.size);
    RC_ASSERT(view.media_type() == object.media_type);
  }
}

RC_GTEST_PROP(ContentsRoundTrip, BytesDoNotDependOnTheOrder, ()) {
  auto drafts = DealOut(RandomModel(), 1 + Below(4));
  std::vector<Held> blobs;
  for (std::size_t i = 0; i < drafts.size(); ++i) blobs.push_back(Hold(drafts[i], i));
  std::vector<std::size_t> order = Positions(blobs.size());
  const Bytes bytes = Merge(blobs, order);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Below(i)]);
  for (BlobDraft& draft : drafts) {
    std::reverse(draft.tensors.begin(), draft.tensors.end());
    std::reverse(draft.objects.begin(), draft.objects.end());
    for (ManifestTensor& tensor : draft.tensors) {
      std::reverse(tensor.shards.begin(), tensor.shards.end());
    }
  }
  std::vector<Held> reversed;
  for (std::size_t i = 0; i < drafts.size(); ++i) reversed.push_back(Hold(drafts[i], i));
  RC_ASSERT(Merge(reversed, order) == bytes);
}

// Which geometry is stored, and which blob has which shard, does not change what a tensor is.
RC_GTEST_PROP(ContentsRoundTrip, TouchingShardsAreThoseThatIntersect, ()) {
  Model model;
  model.tensors.push_back(RandomTensor("t"));
  RC_PRE(!model.tensors[0].shards.empty());
  const auto drafts = DealOut(model, 1 + Below(3));
  std::vector<Held> blobs;
  for (std::size_t i = 0; i < drafts.size(); ++i) blobs.push_back(Hold(drafts[i], i));
  const auto bytes = std::make_shared<const Bytes>(Merge(blobs, Positions(blobs.size())));
  const metadata::Metadata index =
      metadata::Metadata::Decode(metadata::MetadataKind::kIndex, bytes, ByteSpan(*bytes), Limits{})
          .value();
  const metadata::TensorView tensor = index.tensor(0);
  Box wanted;
  for (const std::uint64_t extent : tensor.shape()) {
    wanted.offset.push_back(Below(extent));
    wanted.extent.push_back(1 + Below(extent - wanted.offset.back()));
  }
  std::vector<bool> is_touched(tensor.shard_count(), false);
  const std::vector<Region> regions = tensor.regions();
  for (const auto& [shard, region] : tensor.ShardsTouching(wanted)) {
    RC_ASSERT(region == regions[shard]);
    is_touched[shard] = true;
  }
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const bool intersects = !layout::IntersectRegions(regions[i], Region::Of(wanted)).empty();
    RC_ASSERT(!intersects || is_touched[i]);
    // A whole box that shares no element is never named.
    RC_ASSERT(!is_touched[i] || layout::IntersectBoxes(regions[i].box, wanted).has_value());
  }
}

// Damage anywhere is refused or leaves a valid index; never does it crash the reader.
RC_GTEST_PROP(ContentsRoundTrip, FlippedBytesAreHandled, ()) {
  const auto drafts = DealOut(RandomModel(), 1 + Below(3));
  std::vector<Held> blobs;
  for (std::size_t i = 0; i < drafts.size(); ++i) blobs.push_back(Hold(drafts[i], i));
  Bytes damaged = Merge(blobs, Positions(blobs.size()));
  const std::uint64_t flips = 1 + Below(4);
  for (std::uint64_t i = 0; i < flips; ++i) {
    damaged[Below(damaged.size())] = static_cast<std::byte>(Below(256));
  }
  const auto bytes = std::make_shared<const Bytes>(std::move(damaged));
  const auto decoded =
      metadata::Metadata::Decode(metadata::MetadataKind::kIndex, bytes, ByteSpan(*bytes), Limits{});
  if (!decoded.ok()) {
    RC_ASSERT(!decoded.status().place().rule.empty());
    return;
  }
  for (std::size_t i = 0; i < decoded->tensor_count(); ++i) {
    RC_ASSERT(decoded->tensor(i).regions().size() == decoded->tensor(i).shard_count());
  }
}

}  // namespace
}  // namespace sealpoint::internal
