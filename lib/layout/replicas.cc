// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/replicas.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::layout {
namespace {

std::uint64_t ElementsPerChunk(const HeldRun& held) {
  return held.chunk_size_bytes / held.element_size;
}

std::uint64_t ChunkCount(const HeldRun& held) {
  return DivideRoundUp(held.run.size(), ElementsPerChunk(held));
}

// The run of the chunks [begin, end) of a held run.
Run ChunkRange(const HeldRun& held, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t per_chunk = ElementsPerChunk(held);
  const std::uint64_t count = held.run.size();
  // The last chunk may be short, and the end that it would have if full need not fit 64 bits.
  const std::uint64_t end_element = end == ChunkCount(held) ? count : end * per_chunk;
  return {.begin = held.run.begin + begin * per_chunk, .end = held.run.begin + end_element};
}

// The number of chunks of a run that begin before byte `target` of the stream; the run begins at
// byte `run_begin` of it.
std::uint64_t ChunksBefore(std::uint64_t target, std::uint64_t run_begin, const HeldRun& held) {
  if (target <= run_begin) return 0;
  return std::min(DivideRoundUp(target - run_begin, held.chunk_size_bytes), ChunkCount(held));
}

// floor(total * holder / holder_count) without overflow.
std::uint64_t Share(std::uint64_t total, std::size_t holder, std::size_t holder_count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(total) * holder / holder_count);
}

}  // namespace

// Every rank computes this for itself, and nothing compares the results before the blobs are
// written: two ranks that divide differently leave a hole or an overlap, which only the merge of
// the index finds, after all bytes were moved. So the result depends on the arguments alone, in
// integer arithmetic, and a change of it is a change of the protocol between the ranks of one job.
//
// The targets (h + 1) * total / holder_count ascend, and a chunk goes to the holder in whose share
// it begins. A holder whose share holds no begin of a chunk writes nothing. The last holder takes
// all that is left, whatever rounding did.
std::vector<HolderShare> DivideEvenly(std::span<const HeldRun> held, std::size_t holder_count) {
  SEALPOINT_CHECK(holder_count > 0);
  std::uint64_t total = 0;
  for (const HeldRun& part : held) total += part.run.size() * part.element_size;

  std::vector<HolderShare> shares;
  std::size_t holder = 0;
  std::uint64_t run_begin = 0;  // in the stream
  for (std::size_t index = 0; index < held.size(); ++index) {
    const HeldRun& part = held[index];
    const std::uint64_t count = ChunkCount(part);
    std::uint64_t begin = 0;
    while (begin < count) {
      const bool is_last = holder + 1 == holder_count;
      const std::uint64_t target = Share(total, holder + 1, holder_count);
      const std::uint64_t end = is_last ? count : ChunksBefore(target, run_begin, part);
      if (end > begin) {
        shares.push_back(
            {.held_index = index, .holder = holder, .run = ChunkRange(part, begin, end)});
        begin = end;
      }
      if (begin < count) ++holder;
    }
    run_begin += part.run.size() * part.element_size;
  }
  return shares;
}

}  // namespace sealpoint::internal::layout
