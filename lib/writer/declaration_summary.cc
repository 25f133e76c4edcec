// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/declaration_summary.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "lib/base/endian.h"
#include "lib/base/mix.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/tiling_sum.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::writer {
namespace {

using Hash = SlotSummary::Hash;

Hash HashText(std::string_view text) {
  const Digest digest = ComputeDigest(AsBytes(text));
  return {LoadLe<std::uint64_t>(digest.bytes, 0), LoadLe<std::uint64_t>(digest.bytes, 8)};
}

void Append(Hash& hash, std::uint64_t number) {
  for (std::uint64_t& lane : hash) lane = MixWith(lane, number);
}

Hash HashSpec(const Hash& name, const TensorSpec& tensor) {
  Hash spec = name;
  Append(spec, static_cast<std::uint64_t>(tensor.dtype));
  Append(spec, ElementSize(tensor));
  for (const std::uint64_t extent : tensor.shape) Append(spec, extent);
  Append(spec, tensor.chunk_size_bytes);
  for (const std::uint64_t cut : tensor.stored_cuts) Append(spec, cut);
  for (const std::string& rule : tensor.placement) {
    for (const std::uint64_t lane : HashText(rule)) Append(spec, lane);
  }
  if (tensor.attributes.empty()) return spec;
  for (const std::uint64_t lane : HashText(tensor.attributes.encoded())) Append(spec, lane);
  return spec;
}

// A run consists of 2 * ndim - 1 boxes at most.
std::uint64_t CornerCountOfRuns(const Region& region) {
  const std::size_t ndim = region.box.extent.size();
  return (ndim == 0 ? 1 : 2 * std::uint64_t{ndim} - 1) << ndim;
}

// `is_divided`: among several ranks, so that it is written in runs.
void AddRegion(const Region& region, const Hash& spec, const Shape& shape, bool is_divided,
               SlotSummary& slot, ReplicaGroupSummary& group) {
  slot.run = region.run;
  slot.has_first_element =
      region.run.begin == 0 && std::all_of(region.box.offset.begin(), region.box.offset.end(),
                                           [](std::uint64_t offset) { return offset == 0; });
  ++group.region_count;
  group.corner_count_max = std::max(group.corner_count_max,
                                    is_divided ? CornerCountOfRuns(region) : CornerCountOf(region));
  layout::TilingSum tiling = layout::TilingSum::FromValues(group.tiling);
  tiling.AddRegion(spec, region);
  // One region has the first element: so the tensor is subtracted once.
  if (slot.has_first_element) tiling.SubtractTensor(spec, shape);
  group.tiling = tiling.values();
  layout::TilingSum names = layout::TilingSum::FromValues(group.names);
  names.AddName(spec, region);
  group.names = names.values();
}

// Adds the slot to `group`, that of its list of replicas; leaves out what depends on other slots.
SlotSummary Summarize(const DeclaredTensor& held, ReplicaGroupSummary& group) {
  const Hash name = HashText(held.tensor.name);
  const Hash spec = HashSpec(name, held.tensor);
  SlotSummary slot{.chunk_size_bytes = held.tensor.chunk_size_bytes,
                   .element_size = ElementSize(held.tensor),
                   .replica_group = group.number,
                   .is_empty = ViewOf(held).is_empty(),
                   .is_empty_tensor = IsEmpty(held.tensor),
                   .name = name,
                   .spec = spec[1]};
  if (!slot.is_empty) {
    AddRegion(HeldRegionOf(held), spec, held.tensor.shape, held.replicas.size() > 1, slot, group);
  }
  return slot;
}

}  // namespace

DeclarationSummary::DeclarationSummary() : first_slots_(ByName{&tensors_}) {}

DeclarationSummary::DeclarationSummary(const DeclarationSummary& other)
    : tensors_(other.tensors_),
      slots_(other.slots_),
      replica_groups_(other.replica_groups_),
      replica_lists_(replica_groups_.size()),
      blob_groups_(other.blob_groups_),
      first_slots_(other.first_slots_.begin(), other.first_slots_.end(), ByName{&tensors_}),
      own_numbers_(other.own_numbers_),
      all_slots_(other.all_slots_),
      next_slot_(other.next_slot_),
      slots_of_a_tensor_max_(other.slots_of_a_tensor_max_),
      object_numbers_(other.object_numbers_) {
  for (const auto& [replicas, group] : replica_groups_) replica_lists_[group.number] = &replicas;
}

DeclaredView DeclarationSummary::held(std::size_t slot) const {
  DeclaredView view = tensors_[slot];
  view.replicas = *replica_lists_[slots_[slot].replica_group];
  return view;
}

void DeclarationSummary::AddSlot(const DeclaredTensor& held) {
  digest_.reset();
  const std::size_t number = slots_.size();
  const auto list = replica_groups_.try_emplace(held.replicas).first;
  if (replica_groups_.size() > replica_lists_.size()) {
    list->second.number = static_cast<std::uint32_t>(replica_lists_.size());
    replica_lists_.push_back(&list->first);
  }
  SlotSummary slot = Summarize(held, list->second);
  BlobGroupSummary& group = blob_groups_.try_emplace(held.tensor.group).first->second;
  if (group.slot_count == 0) group.number = static_cast<std::uint32_t>(blob_groups_.size() - 1);
  ++group.slot_count;
  slot.blob_group = group.number;
  auto tensor = first_slots_.lower_bound(std::string_view(held.tensor.name));
  const bool is_first = tensor == first_slots_.end() || tensors_.name(*tensor) != held.tensor.name;
  tensors_.Add(held, is_first ? "" : tensors_.name(*tensor));
  own_numbers_.push_back(number);
  if (is_first) tensor = first_slots_.insert(tensor, number);
  slot.is_first_of_tensor = is_first;
  Link(number, tensor, is_first);
  if (!is_first) {
    std::vector<std::size_t>& slots = all_slots_[*tensor];
    if (slots.empty()) slots.push_back(*tensor);
    slots.push_back(number);
  }
  slots_of_a_tensor_max_ = std::max(slots_of_a_tensor_max_, SlotsBehind(*tensor).size());
  slots_.push_back(slot);
}

// All slots of the tensor whose first one this is.
std::span<const std::size_t> DeclarationSummary::SlotsBehind(std::size_t first_slot) const {
  const auto several = all_slots_.find(first_slot);
  if (several != all_slots_.end()) return several->second;
  return std::span(own_numbers_).subspan(first_slot, 1);
}

// Behind the last slot of `tensor`, or of the tensor before it.
void DeclarationSummary::Link(std::size_t slot, FirstSlots::const_iterator tensor, bool is_first) {
  if (is_first && tensor == first_slots_.begin()) {
    const auto behind = std::next(tensor);
    next_slot_.push_back(behind == first_slots_.end() ? kNoSlot : *behind);
    return;
  }
  const std::size_t before = SlotsBehind(is_first ? *std::prev(tensor) : *tensor).back();
  next_slot_.push_back(next_slot_[before]);
  next_slot_[before] = slot;
}

bool DeclarationSummary::AddObject(std::string_view name) {
  digest_.reset();
  return object_numbers_.emplace(name, object_numbers_.size()).second;
}

std::span<const std::size_t> DeclarationSummary::SlotsOf(std::string_view tensor) const {
  const auto found = first_slots_.find(tensor);
  if (found == first_slots_.end()) return {};
  return SlotsBehind(*found);
}

std::optional<std::size_t> DeclarationSummary::FindObject(std::string_view name) const {
  const auto found = object_numbers_.find(name);
  if (found == object_numbers_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t CornerCountOf(const Region& region) {
  const bool is_box = region.run == Run{0, layout::BoxElementCount(region.box)};
  return is_box ? std::uint64_t{1} << region.box.extent.size() : CornerCountOfRuns(region);
}

Region HeldRegionOf(const DeclaredTensor& held) {
  return held.region ? *held.region : Region::Whole(held.tensor.shape);
}

SlotSummary::Hash HashObjectName(std::string_view name) {
  Hash hash = HashText(name);
  Append(hash, 1);
  return hash;
}

}  // namespace sealpoint::internal::writer
