// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/declaration.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/digest/hasher.h"
#include "lib/layout/region_algebra.h"
#include "lib/writer/declaration_codec.h"
#include "lib/writer/declaration_summary.h"
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

// How a slot is named in errors.
std::string SlotText(std::size_t slot, const HeldTensor& held) {
  if (internal::IsEmpty(held.tensor)) return internal::StrCat("slot ", slot);
  return internal::StrCat("slot ", slot, " with region ", internal::HeldRegionOf(held).ToString());
}

// Of two slots of a tensor. Precondition: both passed CheckHeld.
Status CheckApart(std::size_t slot, const HeldTensor& held, std::size_t other_slot,
                  const HeldTensor& other) {
  if (held.tensor.dtype != other.tensor.dtype || held.tensor.shape != other.tensor.shape) {
    return internal::InvalidArgument(
        "slot ", slot, " has ", DTypeName(held.tensor.dtype), " ", ShapeToString(held.tensor.shape),
        ", expected ", DTypeName(other.tensor.dtype), " ", ShapeToString(other.tensor.shape),
        " as slot ", other_slot, " has");
  }
  const bool is_empty = internal::IsEmpty(held.tensor);
  if (!is_empty &&
      !internal::RegionsOverlap(internal::HeldRegionOf(held), internal::HeldRegionOf(other))) {
    return {};
  }
  return internal::InvalidArgument("declared twice: ", SlotText(slot, held), " and ",
                                   SlotText(other_slot, other), is_empty ? "" : " overlap");
}

// Sources have `count` slots.
Status CheckSlot(std::size_t slot, std::size_t count) {
  if (slot < count) return {};
  return internal::InvalidArgument("slot ", slot, " was never declared");
}

}  // namespace

Declaration::Declaration() = default;
Declaration::~Declaration() = default;
Declaration::Declaration(Declaration&& other) noexcept = default;
Declaration& Declaration::operator=(Declaration&& other) noexcept = default;

Declaration::Declaration(const Declaration& other)
    : objects_(other.objects_),
      summary_(other.summary_ ? std::make_unique<Summary>(*other.summary_) : nullptr) {}

Declaration& Declaration::operator=(const Declaration& other) { return *this = Declaration(other); }

const Declaration::Summary& Declaration::summary() const {
  static const Summary empty;
  return summary_ ? *summary_ : empty;
}

Declaration::Summary& Declaration::mutable_summary() {
  if (!summary_) summary_ = std::make_unique<Summary>();
  return *summary_;
}

const std::vector<HeldTensor>& Declaration::tensors() const& { return summary().tensors(); }

std::vector<HeldTensor> Declaration::tensors() && {
  const std::unique_ptr<Summary> taken = std::move(summary_);
  return taken ? taken->TakeTensors() : std::vector<HeldTensor>();
}

const internal::DeclarationSummary& InternalAccess::SummaryOf(const Declaration& declaration) {
  return declaration.summary();
}

// `pending` are slots of the same tensor that will be added before it.
Status Declaration::CheckNext(const HeldTensor& held, std::span<const HeldTensor> pending) const {
  // So that a tensor of many slots costs no more than linear time; Save compares all.
  constexpr std::size_t kComparedMax = 128;
  SEALPOINT_RETURN_IF_ERROR(CheckHeld(held));
  const std::vector<HeldTensor>& tensors = this->tensors();
  const std::size_t slot = tensors.size() + pending.size();
  for (std::size_t i = pending.size() - std::min(pending.size(), kComparedMax); i < pending.size();
       ++i) {
    SEALPOINT_RETURN_IF_ERROR(CheckApart(slot, held, tensors.size() + i, pending[i]));
  }
  const std::span<const std::size_t> slots = SlotsOf(held.tensor.name);
  for (const std::size_t other : slots.last(std::min(slots.size(), kComparedMax))) {
    SEALPOINT_RETURN_IF_ERROR(CheckApart(slot, held, other, tensors[other]));
  }
  return {};
}

Result<std::size_t> Declaration::Add(HeldTensor held) {
  SEALPOINT_RETURN_IF_ERROR(CheckNext(held, {}).AtTensor(held.tensor.name));
  mutable_summary().AddSlot(std::move(held));
  return tensors().size() - 1;
}

Result<std::vector<std::size_t>> Declaration::Add(const TensorSpec& tensor,
                                                  const LocalLayout& layout) {
  std::vector<HeldTensor> held;
  for (const LocalPart& part : layout.parts)
    held.push_back({.tensor = tensor, .region = part.region});
  SEALPOINT_RETURN_IF_ERROR(internal::CheckTensorSpec(tensor).AtTensor(tensor.name));
  if (held.empty() && internal::IsEmpty(tensor)) held.push_back({.tensor = tensor});
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (layout.replicas.size() > 1) held[i].replicas = layout.replicas;
    const auto pending = std::span<const HeldTensor>(held).first(i);
    SEALPOINT_RETURN_IF_ERROR(CheckNext(held[i], pending).AtTensor(tensor.name));
  }
  std::vector<std::size_t> slots;
  for (HeldTensor& one : held) {
    slots.push_back(tensors().size());
    mutable_summary().AddSlot(std::move(one));
  }
  return slots;
}

Status Declaration::AddObject(HeldObject object) {
  SEALPOINT_RETURN_IF_ERROR(
      internal::CheckObjectName(object.name, object.media_type, object.codec));
  if (!mutable_summary().AddObject(object.name)) {
    return internal::InvalidArgument("object declared twice").AtObject(object.name);
  }
  objects_.push_back(std::move(object));
  return {};
}

std::span<const std::size_t> Declaration::SlotsOf(std::string_view tensor) const& {
  return summary().SlotsOf(tensor);
}

std::optional<std::size_t> Declaration::FindObject(std::string_view name) const {
  return summary().FindObject(name);
}

Digest Declaration::ComputeDigest() const {
  internal::Hasher hasher;
  Bytes encoded;
  internal::WireWriter out(encoded);
  out.Put(std::uint64_t{tensors().size()});
  for (const HeldTensor& held : tensors()) {
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

Status Sources::Bind(std::size_t slot, MemoryView view) {
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

Status Sources::Bind(std::string_view tensor, MemoryView view) {
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
                     const MemoryView& local) {
  const bool is_empty = layout.parts.empty() && slots.size() <= 1;
  if (!is_empty && slots.size() != layout.parts.size()) {
    return internal::InvalidArgument(slots.size(), " slots for a layout of ", layout.parts.size(),
                                     " parts");
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(CheckSlot(slots[i], tensors_.size()));
    MemoryView view;
    if (!is_empty) {
      const TensorSpec& tensor = declaration_->tensors()[slots[i]].tensor;
      if (!local.is_dense()) {
        return internal::InvalidArgument("the local tensor of a layout has strides, expected none")
            .AtTensor(tensor.name);
      }
      view = SourceOf(layout.parts[i], local, internal::ElementSize(tensor));
    }
    SEALPOINT_RETURN_IF_ERROR(Bind(slots[i], std::move(view)));
  }
  return {};
}

Status Sources::BindObject(std::string_view object, ByteSpan bytes) {
  const std::size_t number = declaration_->FindObject(object).value_or(objects_.size());
  if (number >= objects_.size()) {
    return internal::InvalidArgument("object was never declared").AtObject(object);
  }
  std::optional<ByteSpan>& slot = objects_[number];
  if (slot) return internal::InvalidArgument("object bound twice").AtObject(object);
  if (bytes.data() == nullptr && !bytes.empty()) {
    return internal::InvalidArgument("object bytes are null").AtObject(object);
  }
  slot = bytes;
  return {};
}

}  // namespace sealpoint
