// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MESH_H_
#define SEALPOINT_MESH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Names and sizes of the axes, outermost first.
using MeshAxes = std::vector<std::pair<std::string, std::uint32_t>>;

// Ranks arranged on named axes. Rank numbers are row-major: the last axis changes fastest, as in
// torch's DeviceMesh. A job with another order must renumber its ranks (MPI_Comm_split). A value
// type; const functions are safe from any thread.
class SEALPOINT_EXPORT Mesh {
 public:
  // One rank, no axes.
  Mesh() = default;

  // Errors: InvalidArgument (an empty or repeated name, a size of 0, more than 2^31 - 1 ranks).
  static Result<Mesh> Create(MeshAxes axes);
  // Parses the command-line form "data=2,tensor=4". Errors: those of Create, and InvalidArgument
  // for any other form.
  static Result<Mesh> Parse(std::string_view text);

  const MeshAxes& axes() const { return axes_; }
  // Number of ranks: the product of the sizes.
  int size() const { return size_; }
  // Position of an axis; empty if no axis has this name.
  std::optional<std::size_t> Find(std::string_view axis) const;

  // One coordinate per axis. Errors: InvalidArgument (no such rank).
  Result<std::vector<std::uint32_t>> CoordinatesOf(int rank) const;
  // Errors: InvalidArgument (wrong number of coordinates; a coordinate not below its axis size).
  Result<int> RankAt(std::span<const std::uint32_t> coordinates) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  MeshAxes axes_;
  int size_ = 1;
};

}  // namespace sealpoint

#endif  // SEALPOINT_MESH_H_
