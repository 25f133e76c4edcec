// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_CHUNK_COMPARE_H_
#define SEALPOINT_LIB_COMPARE_CHUNK_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/load/checkpoint_impl.h"

namespace sealpoint::internal::compare {

// What the tables of two checkpoints say of a tensor that both have.
struct ChunkComparison {
  std::vector<Region> changed;  // chunks whose digests differ
  std::vector<Region> unknown;  // cut differently: the payload has to be compared
  std::uint64_t table_bytes_read = 0;
};

// Precondition: dtype, element size and shape are equal.
Result<ChunkComparison> CompareChunks(const load::CheckpointImpl& first, std::size_t first_tensor,
                                      const load::CheckpointImpl& second,
                                      std::size_t second_tensor);

// Whether the bytes of two objects of one size are equal; adds to both what was read.
Result<bool> ObjectsAreEqual(const load::CheckpointImpl& first, const metadata::ObjectView& object,
                             const load::CheckpointImpl& second, const metadata::ObjectView& other,
                             std::uint64_t& table_bytes_read, std::uint64_t& payload_bytes_read);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_CHUNK_COMPARE_H_
