// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/metadata_encoder.h"

#include <algorithm>

#include "lib/format/constants.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::metadata {
namespace {

// Room for the root table, alignment and whatever else is small beside a vector.
constexpr std::uint64_t kReserveBytes = 64 * kKiB;

template <typename T>
flatbuffers::Offset<flatbuffers::Vector<T>> AddVector(flatbuffers::FlatBufferBuilder* builder,
                                                      std::span<const T> values) {
  return builder->CreateVector(values.data(), values.size());
}

flatbuffers::Offset<flatbuffers::String> AddString(flatbuffers::FlatBufferBuilder* builder,
                                                   std::string_view text) {
  return builder->CreateString(text.data(), text.size());
}

}  // namespace

std::size_t NumbersHash::operator()(const std::vector<std::uint64_t>& numbers) const {
  const Digest digest = ComputeDigest(std::as_bytes(std::span(numbers)));
  std::size_t hash = 0;
  std::memcpy(&hash, digest.bytes.data(), sizeof(hash));
  return hash;
}

MetadataEncoder::MetadataEncoder(std::uint64_t size_hint_bytes, std::uint64_t size_max_bytes)
    : size_max_bytes_(std::min(size_max_bytes, format::kFlatBufferSizeMax - kReserveBytes)),
      builder_(static_cast<std::size_t>(
          std::clamp(size_hint_bytes, kReserveBytes, format::kFlatBufferSizeMax / 2))) {}

bool MetadataEncoder::HasRoom(std::uint64_t size_bytes) const {
  const std::uint64_t offsets = (tensors_.size() + objects_.size()) * sizeof(std::uint32_t);
  const std::uint64_t used = builder_.GetSize() + offsets;
  return used <= size_max_bytes_ && size_bytes <= size_max_bytes_ - used;
}

void MetadataEncoder::AddTensor(const TensorFields& fields, const EncodedGeometry& geometry,
                                std::span<const fb::ShardRef> shards,
                                flatbuffers::Offset<FbStrings> placement) {
  const auto shape = AddShape(fields.shape);
  const auto refs = builder_.CreateVectorOfStructs(shards.data(), shards.size());
  const auto name = AddString(&builder_, fields.name);
  const auto attributes = AddAttributes(fields.attributes);
  std::optional<fb::Bits128> fingerprint;
  if (fields.fingerprint) fingerprint = BitsOf(*fields.fingerprint);
  tensors_.push_back(fb::CreateTensor(
      builder_, name, shape, geometry.grid, geometry.boxes, refs, fields.dtype, fields.element_size,
      fields.chunk_size_log2, placement, fingerprint ? &*fingerprint : nullptr, attributes));
}

void MetadataEncoder::AddObject(std::string_view name, std::string_view media_type,
                                std::uint64_t size, fb::ShardRef shard,
                                std::uint8_t chunk_size_log2) {
  const auto type = builder_.CreateSharedString(media_type.data(), media_type.size());
  const auto text = AddString(&builder_, name);
  objects_.push_back(fb::CreateObject(builder_, text, type, size, &shard, chunk_size_log2));
}

EncodedGeometry MetadataEncoder::AddGrid(const layout::Grid& grid) {
  std::vector<std::uint64_t> cuts;
  std::vector<std::uint32_t> cut_counts;
  for (const auto& dimension : grid.cuts) {
    cuts.insert(cuts.end(), dimension.begin(), dimension.end());
    cut_counts.push_back(static_cast<std::uint32_t>(dimension.size()));
  }
  std::vector<std::uint64_t> run_cuts;
  std::vector<std::uint32_t> run_cut_counts;
  for (const auto& cell : grid.run_cuts) {
    run_cuts.insert(run_cuts.end(), cell.begin(), cell.end());
    run_cut_counts.push_back(static_cast<std::uint32_t>(cell.size()));
  }
  const auto fb_cuts = AddNumbers(cuts);
  const auto fb_counts = AddVector<std::uint32_t>(&builder_, cut_counts);
  if (run_cuts.empty()) return {.grid = fb::CreateGrid(builder_, fb_cuts, fb_counts), .boxes = 0};
  const auto fb_run_counts = AddVector<std::uint32_t>(&builder_, run_cut_counts);
  const auto fb_run_cuts = AddNumbers(run_cuts);
  return {.grid = fb::CreateGrid(builder_, fb_cuts, fb_counts, fb_run_counts, fb_run_cuts),
          .boxes = 0};
}

EncodedGeometry MetadataEncoder::AddBoxList(Numbers boxes, Numbers runs) {
  const auto fb_boxes = AddNumbers(boxes);
  flatbuffers::Offset<FbNumbers> fb_runs;
  if (!runs.empty()) fb_runs = AddNumbers(runs);
  return {.grid = 0, .boxes = fb::CreateBoxList(builder_, fb_boxes, fb_runs)};
}

flatbuffers::Offset<FbStrings> MetadataEncoder::AddPlacement(std::span<const std::string> texts) {
  if (texts.empty()) return 0;
  const auto found = placements_.find(texts);
  if (found != placements_.end()) return found->second;
  std::vector<flatbuffers::Offset<flatbuffers::String>> strings;
  for (const std::string& text : texts) {
    strings.push_back(builder_.CreateSharedString(text.data(), text.size()));
  }
  const auto offset = builder_.CreateVector(strings.data(), strings.size());
  placements_.emplace(std::vector<std::string>(texts.begin(), texts.end()), offset);
  return offset;
}

flatbuffers::Offset<FbBytes> MetadataEncoder::AddAttributes(std::string_view encoded) {
  if (encoded.empty()) return 0;
  const auto found = attributes_.find(encoded);
  if (found != attributes_.end()) return found->second;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(encoded.data());
  const auto offset = builder_.CreateVector(bytes, encoded.size());
  attributes_.emplace(encoded, offset);
  return offset;
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>>
MetadataEncoder::FinishTensors() {
  return builder_.CreateVector(tensors_.data(), tensors_.size());
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Object>>>
MetadataEncoder::FinishObjects() {
  return builder_.CreateVector(objects_.data(), objects_.size());
}

Bytes MetadataEncoder::TakeBytes() const {
  const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  return Bytes(bytes.begin(), bytes.end());
}

flatbuffers::Offset<FbNumbers> MetadataEncoder::AddNumbers(Numbers numbers) {
  return AddVector<std::uint64_t>(&builder_, numbers);
}

flatbuffers::Offset<FbNumbers> MetadataEncoder::AddShape(Numbers shape) {
  shape_key_.assign(shape.begin(), shape.end());
  const auto found = shapes_.find(shape_key_);
  if (found != shapes_.end()) return found->second;
  const auto offset = AddNumbers(shape);
  shapes_.emplace(shape_key_, offset);
  return offset;
}

}  // namespace sealpoint::internal::metadata
