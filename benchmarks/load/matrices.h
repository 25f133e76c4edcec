// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_LOAD_MATRICES_H_
#define SEALPOINT_BENCHMARKS_LOAD_MATRICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/mesh.h"
#include "sealpoint/placement.h"

namespace sealpoint::bench {

inline constexpr int kMatrixCount = 8;

// Square matrices of f32, of at most so many MiB in all.
Shape MatrixShape(std::uint64_t mib);

// What one rank holds of all of them, each in memory of its own.
struct MatrixParts {
  LocalLayout layout{};
  std::vector<std::vector<float>> matrices{};
};
// Sharded over all ranks along a dimension: 0 by rows, 1 by columns.
MatrixParts MakeParts(const Communicator& comm, const Shape& shape, int dim);

// All ranks together. Any error ends the program with a message.
void SaveMatrices(Communicator& comm, const std::string& target, const Shape& shape,
                  const MatrixParts& parts);

// Borrows the memory of `parts`.
ReadRequest RequestFor(MatrixParts& parts);

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_LOAD_MATRICES_H_
