// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/declared_tensors.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sealpoint::internal::writer {
namespace {

// All of a tensor but its name and its shape.
auto KindParts(const TensorSpec& spec) {
  return std::tie(spec.dtype, spec.element_size, spec.chunk_size_bytes, spec.codec,
                  spec.codec_level, spec.stored_cuts, spec.group, spec.placement, spec.attributes);
}

}  // namespace

bool operator==(const DeclaredView& a, const DeclaredView& b) {
  using std::ranges::equal;
  return a.name == b.name && equal(a.shape, b.shape) && KindParts(a.kind) == KindParts(b.kind) &&
         a.has_region == b.has_region && equal(a.offset, b.offset) && equal(a.extent, b.extent) &&
         a.run == b.run && equal(a.replicas, b.replicas);
}

bool DeclaredTensorTable::KindLess::operator()(const TensorSpec& a, const TensorSpec& b) const {
  return KindParts(a) < KindParts(b);
}

Region DeclaredView::region() const {
  if (!has_region) return Region::Whole({shape.begin(), shape.end()});
  return {{.offset = {offset.begin(), offset.end()}, .extent = {extent.begin(), extent.end()}},
          run};
}

void DeclaredView::CopyTo(TensorSpec& spec) const {
  spec.name.assign(name);
  spec.dtype = kind.dtype;
  spec.shape.assign(shape.begin(), shape.end());
  spec.element_size = kind.element_size;
  spec.chunk_size_bytes = kind.chunk_size_bytes;
  spec.codec = kind.codec;
  spec.codec_level = kind.codec_level;
  spec.stored_cuts = kind.stored_cuts;
  spec.group = kind.group;
  spec.placement = kind.placement;
  spec.attributes = kind.attributes;
}

DeclaredTensor DeclaredView::ToDeclaredTensor() const {
  DeclaredTensor held;
  CopyTo(held.tensor);
  if (has_region) held.region = region();
  held.replicas.assign(replicas.begin(), replicas.end());
  return held;
}

DeclaredView ViewOf(const DeclaredTensor& held) {
  DeclaredView view{.name = held.tensor.name,
                    .shape = held.tensor.shape,
                    .kind = held.tensor,
                    .has_region = held.region.has_value(),
                    .replicas = held.replicas};
  if (held.region) {
    view.offset = held.region->box.offset;
    view.extent = held.region->box.extent;
    view.run = held.region->run;
  }
  return view;
}

DeclaredTensorTable::DeclaredTensorTable(const DeclaredTensorTable& other)
    : slots_(other.slots_),
      names_(other.names_),
      numbers_(other.numbers_),
      kind_numbers_(other.kind_numbers_),
      kinds_(kind_numbers_.size()) {
  for (const auto& [kind, number] : kind_numbers_) kinds_[number] = &kind;
}

void DeclaredTensorTable::Add(const DeclaredTensor& held, std::string_view name) {
  const std::string_view kept = name.empty() ? names_.Keep(held.tensor.name) : name;
  slots_.push_back({.name = kept.data(),
                    .first_number = KeepNumbers(held),
                    .kind = KindOf(held.tensor),
                    .name_size = static_cast<std::uint16_t>(kept.size()),
                    .ndim = static_cast<std::uint8_t>(held.tensor.shape.size()),
                    .has_region = held.region.has_value()});
}

// Equal numbers that come one after the other are kept once.
std::uint64_t DeclaredTensorTable::KeepNumbers(const DeclaredTensor& held) {
  const std::size_t begin = numbers_.size();
  const auto keep = [this](const std::vector<std::uint64_t>& numbers) {
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  };
  keep(held.tensor.shape);
  if (held.region) {
    keep(held.region->box.offset);
    keep(held.region->box.extent);
    numbers_.insert(numbers_.end(), {held.region->run.begin, held.region->run.end});
  }
  if (slots_.empty()) return begin;
  const auto all = std::span<const std::uint64_t>(numbers_);
  const auto before = all.subspan(slots_.back().first_number, slots_.back().number_count());
  if (!std::ranges::equal(before, all.subspan(begin))) return begin;
  numbers_.resize(begin);
  return slots_.back().first_number;
}

std::uint32_t DeclaredTensorTable::KindOf(const TensorSpec& spec) {
  if (!slots_.empty()) {
    const std::uint32_t last = slots_.back().kind;
    if (KindParts(*kinds_[last]) == KindParts(spec)) return last;
  }
  const auto known = kind_numbers_.find(spec);
  if (known != kind_numbers_.end()) return known->second;
  TensorSpec kind = spec;
  kind.name = {};
  kind.shape = {};
  const auto number = static_cast<std::uint32_t>(kinds_.size());
  const auto added = kind_numbers_.emplace(std::move(kind), number);
  kinds_.push_back(&added.first->first);
  return number;
}

DeclaredView DeclaredTensorTable::operator[](std::size_t slot) const {
  const Slot& entry = slots_[slot];
  const std::size_t ndim = entry.ndim;
  const auto numbers =
      std::span<const std::uint64_t>(numbers_).subspan(entry.first_number, entry.number_count());
  DeclaredView view{.name = name(slot),
                    .shape = numbers.first(ndim),
                    .kind = *kinds_[entry.kind],
                    .has_region = entry.has_region};
  if (entry.has_region) {
    view.offset = numbers.subspan(ndim, ndim);
    view.extent = numbers.subspan(2 * ndim, ndim);
    view.run = {numbers[3 * ndim], numbers[3 * ndim + 1]};
  }
  return view;
}

}  // namespace sealpoint::internal::writer
