// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "sealpoint/placement.h"

namespace sealpoint {

using internal::InvalidArgument;

Result<Mesh> Mesh::Create(MeshAxes axes) {
  Mesh mesh;
  std::uint64_t size = 1;
  for (auto& [name, extent] : axes) {
    if (name.empty()) return InvalidArgument("mesh axis has no name");
    if (mesh.Find(name)) return InvalidArgument("mesh has two axes named ", name);
    if (extent == 0) return InvalidArgument("mesh axis ", name, " has size 0, expected at least 1");
    size *= extent;  // both factors are below 2^32
    if (size > std::numeric_limits<int>::max()) {
      return InvalidArgument("mesh has more than ", std::numeric_limits<int>::max(), " ranks");
    }
    mesh.axes_.emplace_back(std::move(name), extent);
  }
  mesh.size_ = static_cast<int>(size);
  return mesh;
}

namespace {

// "data=2".
Result<std::pair<std::string, std::uint32_t>> ParseAxis(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const std::string_view digits = text.substr(std::min(equals + 1, text.size()));
  std::uint32_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  const bool is_size = error == std::errc() && end == digits.data() + digits.size();
  if (is_size && name.find_first_of(" \t()") == std::string_view::npos) {
    return std::pair(std::string(name), size);
  }
  return InvalidArgument("mesh axis is \"", text, "\", expected NAME=SIZE such as data=2");
}

}  // namespace

Result<Mesh> Mesh::Parse(std::string_view text) {
  MeshAxes axes;
  for (;;) {
    const std::size_t comma = text.find(',');
    auto axis = ParseAxis(text.substr(0, comma));
    if (!axis.ok()) return std::move(axis).error();
    axes.push_back(std::move(*axis));
    if (comma == std::string_view::npos) return Create(std::move(axes));
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> Mesh::Find(std::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].first == axis) return i;
  }
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> Mesh::CoordinatesOf(int rank) const {
  if (rank < 0 || rank >= size_) {
    return InvalidArgument("rank is ", rank, ", expected 0 to ", size_ - 1, " in this mesh");
  }
  std::vector<std::uint32_t> coordinates(axes_.size());
  auto rest = static_cast<std::uint32_t>(rank);
  for (std::size_t i = axes_.size(); i-- > 0;) {
    coordinates[i] = rest % axes_[i].second;
    rest /= axes_[i].second;
  }
  return coordinates;
}

Result<int> Mesh::RankAt(std::span<const std::uint32_t> coordinates) const {
  if (coordinates.size() != axes_.size()) {
    return InvalidArgument("got ", coordinates.size(), " coordinates, expected ", axes_.size(),
                           ", one per mesh axis");
  }
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto& [name, extent] = axes_[i];
    if (coordinates[i] >= extent) {
      return InvalidArgument("coordinate on mesh axis ", name, " is ", coordinates[i],
                             ", expected below ", extent);
    }
    rank = rank * extent + coordinates[i];
  }
  return static_cast<int>(rank);
}

}  // namespace sealpoint
