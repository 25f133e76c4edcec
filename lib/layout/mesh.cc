// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/mesh.h"

#include <limits>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"

namespace sealpoint {

using internal::InvalidArgument;

Result<Mesh> Mesh::Create(MeshAxes axes) {
  Mesh mesh;
  std::uint64_t size = 1;
  for (auto& [name, extent] : axes) {
    if (name.empty()) return InvalidArgument("a mesh axis has no name");
    if (mesh.Find(name)) return InvalidArgument("the mesh has two axes named ", name);
    if (extent == 0) return InvalidArgument("mesh axis ", name, " has size 0");
    size *= extent;  // both factors are below 2^32
    if (size > std::numeric_limits<int>::max()) {
      return InvalidArgument("the mesh has more than ", std::numeric_limits<int>::max(), " ranks");
    }
    mesh.axes_.emplace_back(std::move(name), extent);
  }
  mesh.size_ = static_cast<int>(size);
  return mesh;
}

std::optional<std::size_t> Mesh::Find(std::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].first == axis) return i;
  }
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> Mesh::CoordinatesOf(int rank) const {
  if (rank < 0 || rank >= size_) {
    return InvalidArgument("rank ", rank, " is not one of the mesh's ", size_);
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
    return InvalidArgument(coordinates.size(), " coordinates for ", axes_.size(), " mesh axes");
  }
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto& [name, extent] = axes_[i];
    if (coordinates[i] >= extent) {
      return InvalidArgument("coordinate ", coordinates[i], " on mesh axis ", name, " of size ",
                             extent);
    }
    rank = rank * extent + coordinates[i];
  }
  return static_cast<int>(rank);
}

}  // namespace sealpoint
