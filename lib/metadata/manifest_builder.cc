// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/manifest_builder.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "lib/base/macros.h"
#include "lib/metadata/metadata_encoder.h"

namespace sealpoint::internal::metadata {
namespace {

constexpr std::uint64_t kSizeMax = ~std::uint64_t{0};
// A generous estimate of a table and its vectors without their contents.
constexpr std::uint64_t kTensorOverheadBytes = 256;

std::uint8_t Log2Of(std::uint64_t chunk_size) {
  return static_cast<std::uint8_t>(std::countr_zero(chunk_size));
}

std::uint64_t SizeBound(const TensorAttributes& tensor) {
  std::uint64_t size = kTensorOverheadBytes + tensor.name.size() + 8 * tensor.shape.size() +
                       tensor.attributes.size();
  for (const std::string& text : tensor.placement) size += text.size() + 16;
  return size;
}

std::uint64_t SizeBound(const ManifestObject& object) {
  return kTensorOverheadBytes + object.name.size() + object.media_type.size();
}

}  // namespace

class ManifestBuilder::Encoder {
 public:
  explicit Encoder(ManifestBuilder& from)
      : from_(from),
        size_hint_(SizeHint()),
        encoder_(std::make_shared<MetadataEncoder>(size_hint_, kSizeMax)) {}

  EncodedManifest Run();

 private:
  std::uint64_t SizeHint() const;
  void Sort();
  void AddTensor(std::uint32_t number, std::span<const Shard> shards);
  EncodedGeometry AddShards(std::size_t ndim, std::span<const Shard> shards);

  ManifestBuilder& from_;
  const std::uint64_t size_hint_;
  const std::shared_ptr<MetadataEncoder> encoder_;
  std::vector<fb::ShardRef> refs_;
  std::vector<std::uint64_t> boxes_;
  std::vector<std::uint64_t> runs_;
};

// An upper bound.
std::uint64_t ManifestBuilder::Encoder::SizeHint() const {
  std::uint64_t size = 0;
  for (const Shard& shard : from_.shards_) {
    size += 8 * (2 * from_.tensors_[shard.tensor].shape.size() + 3);
  }
  for (const std::uint32_t tensor : from_.added_) size += SizeBound(from_.tensors_[tensor]);
  for (const ManifestObject& object : from_.objects_) size += SizeBound(object);
  return size;
}

// Tensors and objects by name; the shards of a tensor together, by region.
void ManifestBuilder::Encoder::Sort() {
  std::sort(from_.added_.begin(), from_.added_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return from_.tensors_.name(a) < from_.tensors_.name(b);
  });
  std::vector<std::uint32_t> places(from_.tensors_.size());
  for (std::uint32_t i = 0; i < from_.added_.size(); ++i) places[from_.added_[i]] = i;
  const auto numbers = [&](const Shard& shard) {
    const std::size_t count = 2 * from_.tensors_[shard.tensor].shape.size() + 2;
    return std::span(from_.numbers_).subspan(shard.numbers, count);
  };
  std::sort(from_.shards_.begin(), from_.shards_.end(), [&](const Shard& a, const Shard& b) {
    if (a.tensor != b.tensor) return places[a.tensor] < places[b.tensor];
    return std::ranges::lexicographical_compare(numbers(a), numbers(b));
  });
  std::sort(from_.objects_.begin(), from_.objects_.end(),
            [](const ManifestObject& a, const ManifestObject& b) { return a.name < b.name; });
}

EncodedGeometry ManifestBuilder::Encoder::AddShards(std::size_t ndim,
                                                    std::span<const Shard> shards) {
  boxes_.clear();
  runs_.clear();
  bool all_full = true;
  for (const Shard& shard : shards) {
    const auto numbers = std::span(from_.numbers_).subspan(shard.numbers, 2 * ndim + 2);
    const auto extent = numbers.subspan(ndim, ndim);
    const std::uint64_t elements =
        std::accumulate(extent.begin(), extent.end(), std::uint64_t{1}, std::multiplies<>());
    boxes_.insert(boxes_.end(), numbers.begin(), numbers.end() - 2);
    runs_.insert(runs_.end(), numbers.end() - 2, numbers.end());
    all_full = all_full && numbers[2 * ndim] == 0 && numbers[2 * ndim + 1] == elements;
  }
  if (all_full) runs_.clear();
  return encoder_->AddBoxList(boxes_, runs_);
}

void ManifestBuilder::Encoder::AddTensor(std::uint32_t number, std::span<const Shard> shards) {
  const TensorAttributes tensor = from_.tensors_[number];
  refs_.clear();
  for (const Shard& shard : shards) refs_.emplace_back(0, shard.first_record);
  EncodedGeometry geometry;
  if (!shards.empty()) geometry = AddShards(tensor.shape.size(), shards);
  const auto placement = encoder_->AddPlacement(tensor.placement);
  encoder_->AddTensor({.name = tensor.name,
                       .shape = tensor.shape,
                       .dtype = static_cast<std::uint16_t>(tensor.dtype),
                       .element_size = static_cast<std::uint16_t>(tensor.element_size),
                       .chunk_size_log2 = Log2Of(tensor.chunk_size),
                       .fingerprint = from_.FingerprintOf(number),
                       .attributes = tensor.attributes},
                      geometry, refs_, placement);
}

EncodedManifest ManifestBuilder::Encoder::Run() {
  if (!encoder_->HasRoom(size_hint_)) return {};
  Sort();
  auto shard = from_.shards_.begin();
  for (const std::uint32_t number : from_.added_) {
    const auto end = std::find_if(shard, from_.shards_.end(),
                                  [&](const Shard& other) { return other.tensor != number; });
    AddTensor(number, std::span(shard, end));
    shard = end;
  }
  for (const ManifestObject& object : from_.objects_) {
    const std::uint32_t first_record = object.size == 0 ? 0 : object.first_record;
    encoder_->AddObject(object.name, object.media_type, object.size, fb::ShardRef(0, first_record),
                        Log2Of(object.chunk_size));
  }
  const auto fb_tensors = encoder_->FinishTensors();
  const auto fb_objects = encoder_->FinishObjects();
  auto& builder = encoder_->builder();
  builder.Finish(fb::CreateManifest(builder, fb_tensors, fb_objects), kManifestIdentifier);
  const std::span buffer(builder.GetBufferPointer(), builder.GetSize());
  return {.bytes = std::as_bytes(buffer), .owner = encoder_};
}

bool ManifestBuilder::AddTensor(std::uint32_t tensor) {
  if (is_added_.size() <= tensor) is_added_.resize(tensors_.size());
  if (is_added_[tensor]) return false;
  is_added_[tensor] = true;
  added_.push_back(tensor);
  return true;
}

void ManifestBuilder::AddShard(std::uint32_t tensor, const Region& region,
                               std::uint32_t first_record) {
  const std::size_t begin = numbers_.size();
  numbers_.insert(numbers_.end(), region.box.offset.begin(), region.box.offset.end());
  numbers_.insert(numbers_.end(), region.box.extent.begin(), region.box.extent.end());
  numbers_.insert(numbers_.end(), {region.run.begin, region.run.end});
  const std::size_t before = shards_.empty() ? begin : shards_.back().numbers;
  const auto all = std::span(numbers_);
  const bool is_same = std::ranges::equal(all.subspan(before, begin - before), all.subspan(begin));
  if (is_same) numbers_.resize(begin);
  shards_.push_back(
      {.tensor = tensor, .first_record = first_record, .numbers = is_same ? before : begin});
}

void ManifestBuilder::AddFingerprint(std::uint32_t tensor, const Fingerprint& part) {
  SEALPOINT_CHECK(has_fingerprints_);
  if (fingerprints_.size() <= tensor) fingerprints_.resize(tensors_.size());
  fingerprints_[tensor] += part;
}

std::optional<Fingerprint> ManifestBuilder::FingerprintOf(std::uint32_t tensor) const {
  if (!has_fingerprints_) return std::nullopt;
  return tensor < fingerprints_.size() ? fingerprints_[tensor] : Fingerprint();
}

EncodedManifest ManifestBuilder::Encode() {
  EncodedManifest manifest = Encoder(*this).Run();
  is_added_ = std::vector<bool>();
  added_ = std::vector<std::uint32_t>();
  shards_ = std::vector<Shard>();
  numbers_ = std::vector<std::uint64_t>();
  objects_ = std::vector<ManifestObject>();
  fingerprints_ = std::vector<Fingerprint>();
  return manifest;
}

}  // namespace sealpoint::internal::metadata
