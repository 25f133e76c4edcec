// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/declaration.h"

#include <algorithm>
#include <iterator>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/digest/hasher.h"
#include "lib/writer/declaration_codec.h"
#include "lib/writer/slot_facts.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint {
namespace {

Status CheckReplicas(const std::vector<int>& replicas) {
  if (!std::is_sorted(replicas.begin(), replicas.end()) ||
      std::adjacent_find(replicas.begin(), replicas.end()) != replicas.end()) {
    return internal::InvalidArgument("replicas must be ascending ranks without repetition");
  }
  if (!replicas.empty() && replicas.front() < 0) {
    return internal::InvalidArgument("replica rank ", replicas.front(), " is negative");
  }
  return {};
}

Status CheckHeld(const HeldTensor& held) {
  SEALPOINT_RETURN_IF_ERROR(internal::CheckTensorSpec(held.tensor));
  SEALPOINT_RETURN_IF_ERROR(CheckReplicas(held.replicas));
  if (!internal::IsEmpty(held.tensor)) {
    return held.region ? CheckRegion(held.tensor.shape, *held.region) : Status();
  }
  if (held.region) return internal::InvalidArgument("an empty tensor has no region");
  return {};
}

// The entry of a key, which is numbered when it comes first.
template <typename Facts, typename Key>
auto& FactsIn(Facts& facts, const Key& key) {
  const auto [entry, is_new] = facts.try_emplace(key);
  if (is_new) entry->second.number = static_cast<std::uint32_t>(facts.size() - 1);
  return entry->second;
}

// Sources have `count` slots.
Status CheckSlot(std::size_t slot, std::size_t count) {
  if (slot < count) return {};
  return internal::InvalidArgument("slot ", slot, " was never declared");
}

}  // namespace

Result<std::size_t> Declaration::Add(HeldTensor held) {
  SEALPOINT_RETURN_IF_ERROR(CheckHeld(held).AtTensor(held.tensor.name));
  const std::size_t slot = tensors_.size();
  internal::SlotFacts facts = internal::FactsOf(held, FactsIn(holders_, held.replicas));
  internal::GroupFacts& group = FactsIn(groups_, held.tensor.group);
  ++group.slot_count;
  facts.group = group.number;
  const auto [tensor, is_first] = slots_.try_emplace(held.tensor.name);
  facts.is_first_of_tensor = is_first;
  Link(slot, tensor);
  tensor->second.push_back(slot);
  slots_of_a_tensor_max_ = std::max(slots_of_a_tensor_max_, tensor->second.size());
  facts_.push_back(facts);
  tensors_.push_back(std::move(held));
  return slot;
}

// Behind the last slot of `tensor`, or of the tensor before it.
void Declaration::Link(std::size_t slot, SlotsByName::const_iterator tensor) {
  const bool is_first = tensor->second.empty();
  if (is_first && tensor == slots_.begin()) {
    const auto behind = std::next(tensor);
    next_slot_.push_back(behind == slots_.end() ? kNoSlot : behind->second.front());
    return;
  }
  const std::size_t before = (is_first ? std::prev(tensor) : tensor)->second.back();
  next_slot_.push_back(next_slot_[before]);
  next_slot_[before] = slot;
}

Result<std::vector<std::size_t>> Declaration::Add(const TensorSpec& tensor,
                                                  const LocalLayout& layout) {
  std::vector<HeldTensor> held;
  for (const LocalPart& part : layout.parts)
    held.push_back({.tensor = tensor, .region = part.region});
  SEALPOINT_RETURN_IF_ERROR(internal::CheckTensorSpec(tensor).AtTensor(tensor.name));
  if (held.empty() && internal::IsEmpty(tensor)) held.push_back({.tensor = tensor});
  for (HeldTensor& one : held) {
    if (layout.replicas.size() > 1) one.replicas = layout.replicas;
    SEALPOINT_RETURN_IF_ERROR(CheckHeld(one).AtTensor(tensor.name));
  }
  std::vector<std::size_t> slots;
  for (HeldTensor& one : held) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::size_t slot, Add(std::move(one)));
    slots.push_back(slot);
  }
  return slots;
}

Status Declaration::AddObject(HeldObject object) {
  SEALPOINT_RETURN_IF_ERROR(
      internal::CheckObjectName(object.name, object.media_type, object.codec));
  if (!object_numbers_.emplace(object.name, objects_.size()).second) {
    return internal::InvalidArgument("object declared twice").AtTensor(object.name);
  }
  objects_.push_back(std::move(object));
  return {};
}

std::span<const std::size_t> Declaration::SlotsOf(std::string_view tensor) const {
  const auto found = slots_.find(tensor);
  if (found == slots_.end()) return {};
  return found->second;
}

std::optional<std::size_t> Declaration::FindObject(std::string_view name) const {
  const auto found = object_numbers_.find(name);
  if (found == object_numbers_.end()) return std::nullopt;
  return found->second;
}

Digest Declaration::ComputeDigest() const {
  internal::Hasher hasher;
  Bytes encoded;
  internal::WireWriter out(encoded);
  out.Put(std::uint64_t{tensors_.size()});
  for (const HeldTensor& held : tensors_) {
    internal::EncodeHeldTensor(held, out);
    hasher.Update(encoded);
    encoded.clear();
  }
  for (const HeldObject& object : objects_) internal::EncodeHeldObject(object, out);
  hasher.Update(encoded);
  return hasher.Finish();
}

Sources::Sources(const Declaration& declaration)
    : declaration_(&declaration),
      tensors_(declaration.tensors().size()),
      objects_(declaration.objects().size()) {}

Status Sources::Bind(std::size_t slot, ConstMemoryView view) {
  SEALPOINT_RETURN_IF_ERROR(CheckSlot(slot, tensors_.size()));
  const HeldTensor& held = declaration_->tensors()[slot];
  if (tensors_[slot]) {
    return internal::InvalidArgument("memory bound twice").AtTensor(held.tensor.name);
  }
  if (!internal::IsEmpty(held.tensor)) {
    SEALPOINT_RETURN_IF_ERROR(
        internal::CheckSource(held.tensor, internal::HeldRegionOf(held), view));
  }
  tensors_[slot] = std::move(view);
  return {};
}

Status Sources::Bind(std::string_view tensor, ConstMemoryView view) {
  const std::span<const std::size_t> slots = declaration_->SlotsOf(tensor);
  if (slots.empty()) {
    return internal::InvalidArgument("tensor was never declared").AtTensor(tensor);
  }
  if (slots.size() > 1) {
    return internal::InvalidArgument("tensor has several slots here; bind by slot")
        .AtTensor(tensor);
  }
  return Bind(slots.front(), std::move(view));
}

Status Sources::Bind(std::span<const std::size_t> slots, const LocalLayout& layout,
                     const void* local, int device, void* stream) {
  const bool is_empty = layout.parts.empty() && slots.size() <= 1;
  if (!is_empty && slots.size() != layout.parts.size()) {
    return internal::InvalidArgument(slots.size(), " slots for a layout of ", layout.parts.size(),
                                     " parts");
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(CheckSlot(slots[i], tensors_.size()));
    ConstMemoryView view;
    if (!is_empty) {
      const TensorSpec& tensor = declaration_->tensors()[slots[i]].tensor;
      if (local == nullptr) return internal::InvalidArgument("null memory").AtTensor(tensor.name);
      view = SourceOf(layout.parts[i], local, internal::ElementSize(tensor));
      view.device = device;
      view.stream = stream;
    }
    SEALPOINT_RETURN_IF_ERROR(Bind(slots[i], std::move(view)));
  }
  return {};
}

Status Sources::BindObject(std::string_view object, ByteSpan bytes) {
  const std::size_t number = declaration_->FindObject(object).value_or(objects_.size());
  if (number >= objects_.size()) {
    return internal::InvalidArgument("object was never declared").AtTensor(object);
  }
  std::optional<ByteSpan>& slot = objects_[number];
  if (slot) return internal::InvalidArgument("object bound twice").AtTensor(object);
  if (bytes.data() == nullptr && !bytes.empty()) {
    return internal::InvalidArgument("object bytes are null").AtTensor(object);
  }
  slot = bytes;
  return {};
}

}  // namespace sealpoint
