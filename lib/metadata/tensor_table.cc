// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/tensor_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal::metadata {
namespace {

std::uint32_t HashOf(std::string_view name) {
  const std::uint64_t hash = std::hash<std::string_view>()(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

std::uint32_t TensorTable::Add(const TensorAttributes& attributes) {
  SEALPOINT_CHECK(entries_.size() < std::numeric_limits<std::uint32_t>::max());
  const auto number = static_cast<std::uint32_t>(entries_.size());
  const std::string_view set = attributes.attributes;
  auto known = attributes_.find(set);
  if (known == attributes_.end() && !set.empty()) known = attributes_.emplace(set).first;
  entries_.push_back(
      {.name_begin = names_.size(),
       .shape_begin = extents_.size(),
       .name_size = static_cast<std::uint32_t>(attributes.name.size()),
       .element_size = attributes.element_size,
       .placement = NumberOf(attributes.placement),
       .attributes = set.empty() ? nullptr : &*known,
       .dtype = attributes.dtype,
       .ndim = static_cast<std::uint8_t>(attributes.shape.size()),
       .chunk_size_log2 = static_cast<std::uint8_t>(std::countr_zero(attributes.chunk_size))});
  names_.insert(names_.end(), attributes.name.begin(), attributes.name.end());
  extents_.insert(extents_.end(), attributes.shape.begin(), attributes.shape.end());
  if (2 * entries_.size() > places_.size()) Grow();
  const std::uint32_t hash = HashOf(attributes.name);
  places_[PlaceOf(attributes.name, hash)] = {.hash = hash, .number = number};
  return number;
}

std::uint32_t TensorTable::NumberOf(std::span<const std::string> placement) {
  const auto known = placement_numbers_.find(placement);
  if (known != placement_numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(placements_.size());
  const auto added = placement_numbers_.emplace(
      std::vector<std::string>(placement.begin(), placement.end()), number);
  placements_.push_back(&added.first->first);
  return number;
}

std::optional<std::uint32_t> TensorTable::Find(std::string_view name) const {
  if (places_.empty()) return std::nullopt;
  const std::uint32_t number = places_[PlaceOf(name, HashOf(name))].number;
  return number == Place::kFree ? std::nullopt : std::optional(number);
}

std::size_t TensorTable::PlaceOf(std::string_view sought, std::uint32_t hash) const {
  const std::size_t mask = places_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Place& place = places_[at];
    if (place.number == Place::kFree) return at;
    if (place.hash == hash && name(place.number) == sought) return at;
  }
}

void TensorTable::Grow() {
  constexpr std::size_t kFirstPlaces = 64;
  std::vector<Place> places(std::max(kFirstPlaces, 2 * places_.size()));
  const std::size_t mask = places.size() - 1;
  for (const Place& place : places_) {
    if (place.number == Place::kFree) continue;
    std::size_t at = place.hash & mask;
    while (places[at].number != Place::kFree) at = (at + 1) & mask;
    places[at] = place;
  }
  places_ = std::move(places);
}

std::string_view TensorTable::name(std::uint32_t number) const {
  const Entry& entry = entries_[number];
  return {names_.data() + entry.name_begin, entry.name_size};
}

TensorAttributes TensorTable::operator[](std::uint32_t number) const {
  const Entry& entry = entries_[number];
  return {.name = name(number),
          .dtype = entry.dtype,
          .element_size = entry.element_size,
          .chunk_size = std::uint64_t{1} << entry.chunk_size_log2,
          .shape = std::span(extents_).subspan(entry.shape_begin, entry.ndim),
          .placement = *placements_[entry.placement],
          .attributes = entry.attributes == nullptr ? std::string_view() : *entry.attributes};
}

}  // namespace sealpoint::internal::metadata
