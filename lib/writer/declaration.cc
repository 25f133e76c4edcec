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

using internal::writer::DeclaredView;

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

Status CheckHeld(const DeclaredTensor& held) {
  SEALPOINT_RETURN_IF_ERROR(internal::writer::CheckTensorSpec(held.tensor));
  SEALPOINT_RETURN_IF_ERROR(CheckReplicas(held.replicas));
  return held.region ? HasElements(held.tensor.shape, *held.region).status() : Status();
}

// How a slot is named in errors.
std::string SlotText(std::size_t slot, const DeclaredView& held) {
  if (held.is_empty()) return internal::StrCat("slot ", slot);
  return internal::StrCat("slot ", slot, " with region ", held.region().ToString());
}

// Dtype and shape.
std::string KindText(const DeclaredView& held) {
  return internal::StrCat(DTypeName(held.kind.dtype), " ",
                          ShapeToString({held.shape.begin(), held.shape.end()}));
}

// Checks two slots of one tensor. Precondition: both passed CheckHeld.
Status CheckApart(std::size_t slot, const DeclaredView& held, std::size_t other_slot,
                  const DeclaredView& other) {
  if (held.kind.dtype != other.kind.dtype || !std::ranges::equal(held.shape, other.shape)) {
    return internal::InvalidArgument("slot ", slot, " has ", KindText(held), ", expected ",
                                     KindText(other), " as slot ", other_slot, " has");
  }
  const bool is_empty = held.is_empty() || other.is_empty();
  const bool is_twice = is_empty ? !held.has_region && !other.has_region
                                 : internal::layout::RegionsOverlap(held.region(), other.region());
  if (!is_twice) return {};
  return internal::InvalidArgument("declared twice: ", SlotText(slot, held), " and ",
                                   SlotText(other_slot, other), is_empty ? "" : " overlap");
}

// Keeps the first error in `first`; returns `status`.
Status Kept(Status status, Status& first) {
  internal::KeepFirst(first, status);
  return status;
}

Status NeverDeclared(std::string_view tensor) {
  return internal::InvalidArgument("tensor was never declared").AtTensor(tensor);
}

// Sources have `count` slots.
Status CheckSlot(std::size_t slot, std::size_t count) {
  if (slot < count) return {};
  return internal::InvalidArgument("slot ", slot, " was never declared");
}

}  // namespace

Declaration::Declaration() = default;
Declaration::~Declaration() = default;

Declaration::Declaration(Declaration&& other) noexcept
    : objects_(std::move(other.objects_)),
      summary_(std::move(other.summary_)),
      failure_(std::exchange(other.failure_, Status())) {}

Declaration& Declaration::operator=(Declaration&& other) noexcept {
  objects_ = std::exchange(other.objects_, {});
  summary_ = std::move(other.summary_);
  failure_ = std::exchange(other.failure_, Status());
  return *this;
}

Declaration::Declaration(const Declaration& other)
    : objects_(other.objects_),
      summary_(other.summary_ ? std::make_unique<Summary>(*other.summary_) : nullptr),
      failure_(other.failure_) {}

Declaration& Declaration::operator=(const Declaration& other) { return *this = Declaration(other); }

const Declaration::Summary& Declaration::summary() const {
  static const Summary& empty = *new Summary;  // never destroyed: a background save may be at work
  return summary_ ? *summary_ : empty;
}

Declaration::Summary& Declaration::mutable_summary() {
  if (!summary_) summary_ = std::make_unique<Summary>();
  return *summary_;
}

std::vector<DeclaredTensor> Declaration::tensors() const&& {
  const DeclaredTensors all(this);
  return {all.begin(), all.end()};
}

std::size_t DeclaredTensors::size() const { return declaration_->summary().slots().size(); }

DeclaredTensor DeclaredTensors::operator[](std::size_t slot) const {
  SEALPOINT_CHECK(slot < size());
  return declaration_->summary().held(slot).ToDeclaredTensor();
}

bool DeclaredTensors::IsEqual(const DeclaredTensors& other) const {
  const internal::writer::DeclarationSummary& own = declaration_->summary();
  const internal::writer::DeclarationSummary& others = other.declaration_->summary();
  if (own.slots().size() != others.slots().size()) return false;
  for (std::size_t slot = 0; slot < own.slots().size(); ++slot) {
    if (!(own.held(slot) == others.held(slot))) return false;
  }
  return true;
}

const internal::writer::DeclarationSummary& InternalAccess::SummaryOf(
    const Declaration& declaration) {
  return declaration.summary();
}

void InternalAccess::AddSlot(Declaration& declaration, const DeclaredTensor& held) {
  declaration.mutable_summary().AddSlot(held);
}

// `pending` are slots of the same tensor that will be added before it.
Status Declaration::CheckNext(const DeclaredTensor& held,
                              std::span<const DeclaredTensor> pending) const {
  // So that a tensor of many slots costs no more than linear time; Save compares all.
  constexpr std::size_t kComparedMax = 128;
  SEALPOINT_RETURN_IF_ERROR(CheckHeld(held));
  const DeclaredView view = internal::writer::ViewOf(held);
  const std::size_t first_pending = tensors().size();
  const std::size_t slot = first_pending + pending.size();
  for (std::size_t i = pending.size() - std::min(pending.size(), kComparedMax); i < pending.size();
       ++i) {
    SEALPOINT_RETURN_IF_ERROR(
        CheckApart(slot, view, first_pending + i, internal::writer::ViewOf(pending[i])));
  }
  const std::span<const std::size_t> slots = SlotsOf(held.tensor.name);
  for (const std::size_t other : slots.last(std::min(slots.size(), kComparedMax))) {
    SEALPOINT_RETURN_IF_ERROR(CheckApart(slot, view, other, summary().held(other)));
  }
  return {};
}

void Declaration::NoteFailure(Status failure) { internal::KeepFirst(failure_, std::move(failure)); }

Result<std::size_t> Declaration::Add(const DeclaredTensor& held) {
  SEALPOINT_RETURN_IF_ERROR(Kept(CheckNext(held, {}).AtTensor(held.tensor.name), failure_));
  mutable_summary().AddSlot(held);
  return tensors().size() - 1;
}

Result<std::vector<std::size_t>> Declaration::Add(const TensorSpec& tensor,
                                                  const LocalLayout& layout) {
  auto slots = AddParts(tensor, layout);
  NoteFailure(slots.status());
  return slots;
}

Result<std::vector<std::size_t>> Declaration::AddParts(const TensorSpec& tensor,
                                                       const LocalLayout& layout) {
  std::vector<DeclaredTensor> held;
  for (const LocalPart& part : layout.parts)
    held.push_back({.tensor = tensor, .region = part.region});
  SEALPOINT_RETURN_IF_ERROR(internal::writer::CheckTensorSpec(tensor).AtTensor(tensor.name));
  if (held.empty() && internal::writer::IsEmpty(tensor)) held.push_back({.tensor = tensor});
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (layout.replicas.size() > 1) held[i].replicas = layout.replicas;
    const auto pending = std::span<const DeclaredTensor>(held).first(i);
    SEALPOINT_RETURN_IF_ERROR(CheckNext(held[i], pending).AtTensor(tensor.name));
  }
  std::vector<std::size_t> slots;
  for (const DeclaredTensor& held_tensor : held) {
    slots.push_back(tensors().size());
    mutable_summary().AddSlot(held_tensor);
  }
  return slots;
}

Status Declaration::AddObject(ObjectSpec object) {
  Status checked = internal::writer::CheckObjectSpec(object);
  if (checked.ok() && !mutable_summary().AddObject(object.name)) {
    checked = internal::InvalidArgument("object declared twice").AtObject(object.name);
  }
  SEALPOINT_RETURN_IF_ERROR(Kept(std::move(checked), failure_));
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
  return summary().KeepDigest([this] {
    internal::digest::Hasher hasher;
    Bytes encoded;
    internal::WireWriter out(encoded);
    out.Put(std::uint64_t{tensors().size()});
    for (std::size_t slot = 0; slot < tensors().size(); ++slot) {
      internal::writer::EncodeDeclaredTensor(summary().held(slot), out);
      hasher.Update(encoded);
      encoded.clear();
    }
    for (const ObjectSpec& object : objects_) internal::writer::EncodeObjectSpec(object, out);
    hasher.Update(encoded);
    return hasher.Finish();
  });
}

Sources::Sources(const Declaration& declaration)
    : declaration_(&declaration),
      tensors_(declaration.tensors().size()),
      objects_(declaration.objects().size()) {}

const Status& Sources::failure() const {
  if (!declaration_->failure().ok()) return declaration_->failure();
  return failure_.ok() && !slot_failures_.empty() ? slot_failures_.begin()->second : failure_;
}

void Sources::NoteFailure(Status failure) { internal::KeepFirst(failure_, std::move(failure)); }

void Sources::NoteFailure(std::size_t slot, Status failure) {
  if (!failure.ok()) slot_failures_.emplace(slot, std::move(failure));
}

Status Sources::Bind(std::size_t slot, MemoryView view) {
  Status bound = BindSlot(slot, std::move(view));
  if (bound.ok()) slot_failures_.erase(slot);
  NoteFailure(slot, bound);
  return bound;
}

Status Sources::Bind(std::string_view tensor, MemoryView view) {
  const std::span<const std::size_t> slots = declaration_->SlotsOf(tensor);
  if (slots.size() == 1) return Bind(slots.front(), std::move(view));
  return Kept(slots.empty()
                  ? NeverDeclared(tensor)
                  : internal::InvalidArgument("tensor has several slots here; bind by slot")
                        .AtTensor(tensor),
              failure_);
}

Status Sources::Bind(std::span<const std::size_t> slots, const LocalLayout& layout,
                     const MemoryView& local) {
  const bool is_empty = layout.parts.empty() && slots.size() <= 1;
  if (!is_empty && slots.size() != layout.parts.size()) {
    return Kept(internal::InvalidArgument(slots.size(), " slots for a layout of ",
                                          layout.parts.size(), " parts"),
                failure_);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto view = is_empty ? Result(MemoryView()) : PartFor(slots[i], layout.parts[i], local);
    if (!view.ok()) NoteFailure(slots[i], view.status());
    SEALPOINT_RETURN_IF_ERROR(view.ok() ? Bind(slots[i], *std::move(view)) : view.status());
  }
  return {};
}

Status Sources::Bind(std::string_view tensor, const LocalLayout& layout, const MemoryView& local) {
  const std::span<const std::size_t> slots = declaration_->SlotsOf(tensor);
  if (slots.empty() && !layout.parts.empty()) return Kept(NeverDeclared(tensor), failure_);
  return Bind(slots, layout, local);
}

Status Sources::BindObject(std::string_view object, ByteSpan bytes) {
  return Kept(BindBytes(object, bytes), failure_);
}

Result<MemoryView> Sources::PartFor(std::size_t slot, const LocalPart& part,
                                    const MemoryView& local) const {
  SEALPOINT_RETURN_IF_ERROR(CheckSlot(slot, tensors_.size()));
  const DeclaredView held = InternalAccess::SummaryOf(*declaration_).held(slot);
  if (local.is_dense()) return SourceOf(part, local, internal::writer::ElementSize(held.kind));
  return internal::InvalidArgument("the local tensor of a layout has strides, expected none")
      .AtTensor(held.name);
}

Status Sources::BindSlot(std::size_t slot, MemoryView view) {
  SEALPOINT_RETURN_IF_ERROR(CheckSlot(slot, tensors_.size()));
  const DeclaredView held = InternalAccess::SummaryOf(*declaration_).held(slot);
  if (tensors_[slot]) return internal::InvalidArgument("memory bound twice").AtTensor(held.name);
  if (!held.is_empty()) {
    SEALPOINT_RETURN_IF_ERROR(
        internal::writer::CheckMemory(view, held.region(), held.kind).AtTensor(held.name));
  }
  tensors_[slot] = std::move(view);
  return {};
}

Status Sources::BindBytes(std::string_view object, ByteSpan bytes) {
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
