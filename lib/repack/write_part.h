// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_WRITE_PART_H_
#define SEALPOINT_LIB_REPACK_WRITE_PART_H_

#include <cstdint>
#include <functional>
#include <span>

#include "lib/repack/pieces.h"
#include "lib/repack/tasks.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::repack {

struct PartMemory {
  std::uint64_t size_bytes = 0;  // at most, unless a single element is larger
  std::function<Status(std::uint64_t bytes)> on_written{};  // an error ends the writing
};

// Reads the pieces from all sources that have them, verifies, compares or sums them up, and adds
// them to the writer, as many together as fit. Errors: Mismatch (a tensor differs and is not
// averaged), those of Checkpoint::Load and of the writer.
Status WritePieces(const RewriteJob& job, std::span<const ShardPiece> pieces,
                   const PartMemory& memory, BlobWriter& writer);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_WRITE_PART_H_
