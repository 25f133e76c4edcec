// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_HOST_MEMORY_H_
#define SEALPOINT_READERS_COLLECTIVE_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// Memory that the ranks of each host share. Each rank writes to its own part, and the other ranks
// of its host read it. It has no name in any file system and ends with the processes.
class HostMemory {
 public:
  // Each rank's own part has size_of(number of ranks on this host) bytes, which may differ by rank.
  // Collective. Returns null on all ranks if some rank could not map the memory of another one on
  // its host, as in containers that do not share their processes, or if no host has two ranks.
  // Errors, the same on all ranks: Comm, Timeout.
  using SizeOf = std::function<std::uint64_t(std::size_t host_ranks)>;
  static Result<std::unique_ptr<HostMemory>> Create(Communicator& comm, const SizeOf& size_of);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // True for the other ranks of this host.
  bool Reaches(std::size_t rank) const { return of_ranks_[rank].data() != nullptr; }
  MutableByteSpan own() const { return own_; }
  // The part of another rank. Precondition: Reaches(rank).
  ByteSpan Of(std::size_t rank) const { return of_ranks_[rank]; }

 private:
  explicit HostMemory(std::size_t rank_count) : of_ranks_(rank_count) {}

  MutableByteSpan own_;
  std::vector<ByteSpan> of_ranks_;
};

// The messages of a rank to all ranks for one exchange. Messages for ranks of this host stay in
// HostMemory, as many as fit; the communicator then sends only their place. The memory can be
// written to again as soon as all ranks have read the messages.
class Outbox {
 public:
  // Uses bytes [begin, begin + size) of this rank's part. `memory` may be null; else it must
  // outlive this object.
  Outbox(const HostMemory* memory, std::uint64_t begin, std::uint64_t size)
      : memory_(memory), begin_(begin), size_(size) {}

  // Returns the memory for messages of these sizes, by rank.
  std::vector<MutableByteSpan> Allot(const std::vector<std::uint64_t>& sizes);
  // Sends the messages, and returns those of all ranks to this one; valid until the next call of
  // Allot or Exchange. Collective. Errors: Comm, Timeout.
  Result<std::vector<ByteSpan>> Exchange(Communicator& comm);

 private:
  const HostMemory* memory_;
  std::uint64_t begin_;
  std::uint64_t size_;
  std::vector<Bytes> messages_;  // of the communicator
};

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_HOST_MEMORY_H_
