// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/manifest_builder.h"

#include <algorithm>
#include <bit>

#include "lib/layout/region_algebra.h"
#include "lib/metadata/metadata_encoder.h"

namespace sealpoint::internal {
namespace {

constexpr std::uint64_t kSizeMax = ~std::uint64_t{0};
// A generous estimate of a table and its vectors without their contents.
constexpr std::uint64_t kTensorOverheadBytes = 256;

std::uint8_t Log2Of(std::uint64_t chunk_size) {
  return static_cast<std::uint8_t>(std::countr_zero(chunk_size));
}

std::uint64_t SizeBound(const ManifestTensor& tensor) {
  const std::uint64_t numbers_per_shard = 2 * tensor.shape.size() + 3;
  std::uint64_t size = kTensorOverheadBytes + tensor.name.size() + 8 * tensor.shape.size() +
                       8 * numbers_per_shard * tensor.shards.size();
  for (const std::string& text : tensor.placement) size += text.size() + 16;
  return size;
}

std::uint64_t SizeBound(const ManifestObject& object) {
  return kTensorOverheadBytes + object.name.size() + object.media_type.size();
}

EncodedGeometry AddShards(MetadataEncoder* encoder, const std::vector<ManifestShard>& shards) {
  std::vector<std::uint64_t> boxes;
  std::vector<std::uint64_t> runs;
  bool all_full = true;
  for (const ManifestShard& shard : shards) {
    const Region& region = shard.region;
    boxes.insert(boxes.end(), region.box.offset.begin(), region.box.offset.end());
    boxes.insert(boxes.end(), region.box.extent.begin(), region.box.extent.end());
    runs.push_back(region.run.begin);
    runs.push_back(region.run.end);
    all_full = all_full && region.run == Run{0, BoxElementCount(region.box)};
  }
  if (all_full) runs.clear();
  return encoder->AddBoxList(boxes, runs);
}

void AddTensor(MetadataEncoder* encoder, ManifestTensor* tensor) {
  std::sort(tensor->shards.begin(), tensor->shards.end(),
            [](const ManifestShard& a, const ManifestShard& b) { return a.region < b.region; });
  std::vector<fb::ShardRef> refs;
  refs.reserve(tensor->shards.size());
  for (const ManifestShard& shard : tensor->shards) refs.emplace_back(0, shard.first_record);
  EncodedGeometry geometry;
  if (!tensor->shards.empty()) geometry = AddShards(encoder, tensor->shards);
  const auto placement = encoder->AddPlacement(tensor->placement);
  encoder->AddTensor({.name = tensor->name,
                      .shape = tensor->shape,
                      .dtype = static_cast<std::uint16_t>(tensor->dtype),
                      .element_size = static_cast<std::uint16_t>(tensor->element_size),
                      .chunk_size_log2 = Log2Of(tensor->chunk_size)},
                     geometry, refs, placement);
}

template <typename Named>
void SortByName(std::vector<Named>* entries) {
  std::sort(entries->begin(), entries->end(),
            [](const Named& a, const Named& b) { return a.name < b.name; });
}

}  // namespace

Bytes EncodeManifest(std::vector<ManifestTensor> tensors, std::vector<ManifestObject> objects) {
  SortByName(&tensors);
  SortByName(&objects);
  std::uint64_t size_hint = 0;
  for (const ManifestTensor& tensor : tensors) size_hint += SizeBound(tensor);
  for (const ManifestObject& object : objects) size_hint += SizeBound(object);
  MetadataEncoder encoder(size_hint, kSizeMax);
  if (!encoder.HasRoom(size_hint)) return {};

  for (ManifestTensor& tensor : tensors) AddTensor(&encoder, &tensor);
  for (const ManifestObject& object : objects) {
    const std::uint32_t first_record = object.size == 0 ? 0 : object.first_record;
    encoder.AddObject(object.name, object.media_type, object.size, fb::ShardRef(0, first_record),
                      Log2Of(object.chunk_size));
  }
  const auto fb_tensors = encoder.FinishTensors();
  const auto fb_objects = encoder.FinishObjects();
  auto& builder = encoder.builder();
  builder.Finish(fb::CreateManifest(builder, fb_tensors, fb_objects), kManifestIdentifier);
  return encoder.TakeBytes();
}

}  // namespace sealpoint::internal
