// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_LOAD_MATRICES_H_
#define SEALPOINT_BENCHMARKS_LOAD_MATRICES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/common/raw_file.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/placement.h"

namespace sealpoint::bench {

inline constexpr std::size_t kMatrixCount = 8;

// Square matrices of f32, of at most so many MiB in all.
Shape MatrixShape(std::uint64_t mib);

// What one rank holds of all of them, each in memory of its own, which is aligned: into memory at
// an address that is no multiple of 64, read(2) may take twice the time.
struct MatrixParts {
  LocalLayout layout{};
  std::size_t part_bytes = 0;  // of each matrix
  std::vector<AlignedMemory> memory{};

  std::span<std::byte> part(std::size_t matrix) const { return {memory[matrix].get(), part_bytes}; }
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
