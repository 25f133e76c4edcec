// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_CHUNK_COMPARE_H_
#define SEALPOINT_LIB_COMPARE_CHUNK_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/load/checkpoint_impl.h"

namespace sealpoint::internal::compare {

// Comparison of the tables of two checkpoints for a tensor that both have.
struct ChunkComparison {
  std::vector<Region> changed;  // chunks with different digests
  std::vector<Region> unknown;  // cut differently: the payload has to be compared
  std::uint64_t table_bytes_read = 0;
};

// Precondition: dtype, element size and shape are equal.
Result<ChunkComparison> CompareChunks(const load::CheckpointImpl& first, std::size_t first_tensor,
                                      const load::CheckpointImpl& second,
                                      std::size_t second_tensor);

// True if two objects of the same size have the same bytes; adds the bytes read to both.
Result<bool> ObjectsAreEqual(const load::CheckpointImpl& first, const metadata::ObjectView& object,
                             const load::CheckpointImpl& second, const metadata::ObjectView& other,
                             std::uint64_t& table_bytes_read, std::uint64_t& payload_bytes_read);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_CHUNK_COMPARE_H_
