// SPDX-License-Identifier: Apache-2.0
//
// Part of mpi_communicator_impl.h: broadcast, gather and exchange.
#ifndef SEALPOINT_DETAIL_MPI_COMMUNICATOR_MESSAGES_H_
#define SEALPOINT_DETAIL_MPI_COMMUNICATOR_MESSAGES_H_

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "sealpoint/mpi_communicator_impl.h"

namespace sealpoint::detail::mpi {

// Number of bytes that fit into a first message after its head. In their first messages, all ranks
// together send at most 64 KiB of payload to one rank. Messages of this total size cost no more
// than empty messages. In an exchange between pairs of ranks, a first message is only as long as
// its content. Such a message arrives without action by the receiver, because MPI libraries send
// messages of up to 4 KiB eagerly.
std::size_t CommunicatorImpl::FirstRoom() const {
  constexpr std::size_t kRoomInPairs = 2048;
  if (handover_) return std::min(kRoomInPairs, options_.message_max_bytes);
  constexpr std::size_t kRoomMax = 4096;
  constexpr std::size_t kTogetherMax = std::size_t{64} << 10;
  return std::min({kRoomMax, kTogetherMax / ranks(), options_.message_max_bytes / ranks()});
}

void CommunicatorImpl::PutFirst(const FirstHead& head, ByteSpan bytes,
                                std::span<std::byte> message) {
  std::memcpy(message.data(), &head, sizeof(head));
  const std::size_t count = std::min(bytes.size(), message.size() - sizeof(head));
  std::copy_n(bytes.begin(), count, message.begin() + sizeof(head));
}

CommunicatorImpl::FirstHead CommunicatorImpl::HeadOf(ByteSpan message) {
  FirstHead head;
  std::memcpy(&head, message.data(), sizeof(head));
  return head;
}

ByteSpan CommunicatorImpl::BytesOf(ByteSpan message) {
  const std::uint64_t size = HeadOf(message).size;
  const ByteSpan room = message.subspan(sizeof(FirstHead));
  return room.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, room.size())));
}

bool CommunicatorImpl::Meets(int peers, int rank) const {
  return rank != rank_ && (peers == kAllRanks || peers == rank);
}

// Sends outgoing[i] to each rank i that `to` names, and receives from each rank that `from` names.
// Background threads use this exchange, because their ranks may make progress rarely and at
// different times. The exchange ends after each rank has made progress once. MPI's collectives use
// trees of ranks, and need a round of progress for each level of the tree.
Result<std::vector<Bytes>> CommunicatorImpl::ExchangeInPairs(std::vector<Bytes> outgoing, int to,
                                                             int from) {
  constexpr int kTag = 0;
  auto operation = std::make_unique<Operation>();
  const std::size_t size = sizeof(FirstHead) + FirstRoom();
  operation->receive.resize(size * ranks());
  operation->outgoing.resize(ranks());
  operation->requests.assign(2 * ranks(), MPI_REQUEST_NULL);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (!Meets(to, static_cast<int>(rank))) continue;
    Bytes& first = operation->outgoing[rank];
    first.resize(std::min(size, sizeof(FirstHead) + outgoing[rank].size()));
    PutFirst({.size = outgoing[rank].size()}, outgoing[rank], first);
  }
  auto sent = Run(
      "the exchange by MPI_Isend and MPI_Irecv", std::move(operation), [&, this](Operation& op) {
        int code = MPI_SUCCESS;
        MPI_Request* request = op.request();
        for (int rank = 0; rank < size_ && code == MPI_SUCCESS; ++rank, ++request) {
          if (!Meets(from, rank)) continue;
          code = MPI_Irecv(op.receive.data() + size * static_cast<std::size_t>(rank),
                           static_cast<int>(size), MPI_BYTE, rank, kTag, comm_, request);
        }
        for (int i = 1; i <= size_ && code == MPI_SUCCESS; ++i, ++request) {
          const int rank = (rank_ + i) % size_;
          const Bytes& first = op.outgoing[static_cast<std::size_t>(rank)];
          if (first.empty()) continue;
          code = MPI_Isend(first.data(), static_cast<int>(first.size()), MPI_BYTE, rank, kTag,
                           comm_, request);
        }
        return code;
      });
  if (!sent.ok()) return std::move(sent).error();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !Meets(to, rank)) outgoing[static_cast<std::size_t>(rank)].clear();
  }
  const Bytes& messages = (*sent)->receive;
  return ExchangeRest(std::move(outgoing), PartsOf(messages), SizesOf(messages));
}

Result<CommunicatorImpl::Numbers> CommunicatorImpl::ReduceInPairs(const Numbers& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const auto all = ExchangeInPairs(std::vector<Bytes>(ranks(), Bytes(bytes.begin(), bytes.end())),
                                   kAllRanks, kAllRanks);
  if (!all.ok()) return all.error();
  Numbers greatest(values.size());
  for (const Bytes& of_rank : *all) {
    Numbers numbers(values.size());
    std::memcpy(numbers.data(), of_rank.data(), std::min(of_rank.size(), bytes.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      greatest[i] = std::max(greatest[i], numbers[i]);
  }
  return greatest;
}

Status CommunicatorImpl::Broadcast(Bytes& bytes, int root) {
  if (Status status = CheckRoot(root); !status.ok()) return status;
  StartClock();
  if (handover_) {
    const bool is_root = rank_ == root;
    std::vector<Bytes> outgoing(ranks(), is_root ? bytes : Bytes());
    auto incoming = ExchangeInPairs(std::move(outgoing), is_root ? kAllRanks : kNoRank,
                                    is_root ? kNoRank : root);
    if (!incoming.ok()) return incoming.error();
    bytes = std::move((*incoming)[static_cast<std::size_t>(root)]);
    return {};
  }
  auto operation = std::make_unique<Operation>();
  operation->send.resize(sizeof(FirstHead) + FirstRoom());
  if (rank_ == root) PutFirst({.size = bytes.size()}, bytes, operation->send);
  auto sent = Run("MPI_Ibcast", std::move(operation), [this, root](Operation& op) {
    return MPI_Ibcast(op.send.data(), static_cast<int>(op.send.size()), MPI_BYTE, root, comm_,
                      op.request());
  });
  if (!sent.ok()) return std::move(sent).error();
  const ByteSpan first = BytesOf((*sent)->send);
  if (rank_ != root) {
    bytes.assign(static_cast<std::size_t>(HeadOf((*sent)->send).size), {});
    std::copy(first.begin(), first.end(), bytes.begin());
  }
  return BroadcastBytes(bytes, root, first.size());
}

Status CommunicatorImpl::BroadcastBytes(Bytes& bytes, int root, std::size_t begin) {
  for (std::size_t done = begin; done < bytes.size(); done += options_.message_max_bytes) {
    const std::size_t count = std::min(options_.message_max_bytes, bytes.size() - done);
    auto segment = std::make_unique<Operation>();
    segment->send = std::move(bytes);  // lent to the operation, without a copy
    auto sent = Run("MPI_Ibcast", std::move(segment), [this, root, done, count](Operation& op) {
      return MPI_Ibcast(op.send.data() + done, static_cast<int>(count), MPI_BYTE, root, comm_,
                        op.request());
    });
    if (!sent.ok()) return std::move(sent).error();
    bytes = std::move((*sent)->send);
  }
  return {};
}

Result<std::vector<Bytes>> CommunicatorImpl::Gather(ByteSpan bytes, int root) {
  if (Status status = CheckRoot(root); !status.ok()) return status;
  StartClock();
  if (handover_) {
    const bool is_root = rank_ == root;
    std::vector<Bytes> outgoing(ranks());
    outgoing[static_cast<std::size_t>(root)].assign(bytes.begin(), bytes.end());
    auto incoming = ExchangeInPairs(std::move(outgoing), is_root ? kNoRank : root,
                                    is_root ? kAllRanks : kNoRank);
    if (incoming.ok() && !is_root) incoming->clear();
    return incoming;
  }
  return GatherInSegments(bytes, root, false);
}

Result<std::vector<Bytes>> CommunicatorImpl::AllGather(ByteSpan bytes) {
  StartClock();
  if (handover_) {
    return ExchangeInPairs(std::vector<Bytes>(ranks(), Bytes(bytes.begin(), bytes.end())),
                           kAllRanks, kAllRanks);
  }
  return GatherInSegments(bytes, 0, true);
}

// Returns the concatenated first messages of all ranks.
Result<Bytes> CommunicatorImpl::GatherFirst(ByteSpan bytes) {
  auto operation = std::make_unique<Operation>();
  operation->send.resize(sizeof(FirstHead) + FirstRoom());
  PutFirst({.size = bytes.size()}, bytes, operation->send);
  operation->receive.resize(operation->send.size() * ranks());
  auto done = Run("MPI_Iallgather", std::move(operation), [this](Operation& op) {
    const int count = static_cast<int>(op.send.size());
    return MPI_Iallgather(op.send.data(), count, MPI_BYTE, op.receive.data(), count, MPI_BYTE,
                          comm_, op.request());
  });
  if (!done.ok()) return std::move(done).error();
  return std::move((*done)->receive);
}

ByteSpan CommunicatorImpl::MessageOf(std::size_t rank, ByteSpan messages) const {
  const std::size_t size = messages.size() / ranks();
  return messages.subspan(rank * size, size);
}

// Returns the bytes that the first messages contain, by rank.
std::vector<Bytes> CommunicatorImpl::PartsOf(ByteSpan messages) const {
  std::vector<Bytes> parts(ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const ByteSpan first = BytesOf(MessageOf(rank, messages));
    parts[rank].reserve(static_cast<std::size_t>(HeadOf(MessageOf(rank, messages)).size));
    parts[rank].assign(first.begin(), first.end());
  }
  return parts;
}

CommunicatorImpl::Numbers CommunicatorImpl::SizesOf(ByteSpan messages) const {
  Numbers sizes(ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    sizes[rank] = HeadOf(MessageOf(rank, messages)).size;
  }
  return sizes;
}

// Number of bytes that each rank sends per call if one rank collects `total` bytes. If `total` fits
// into one message, each rank sends all its bytes; if not, each rank sends an equal share of the
// maximum message size.
std::uint64_t CommunicatorImpl::SegmentLength(std::uint64_t total) const {
  const std::uint64_t limit = options_.message_max_bytes;
  return total <= limit ? limit : std::max<std::uint64_t>(1, limit / ranks());
}

std::uint64_t CommunicatorImpl::SegmentSize(std::uint64_t size, std::uint64_t done,
                                            std::uint64_t segment) {
  return size <= done ? 0 : std::min(segment, size - done);
}

CommunicatorImpl::Layout CommunicatorImpl::LayOut(const Numbers& sizes, std::uint64_t done,
                                                  std::uint64_t segment) {
  Layout layout;
  int start = 0;
  for (const std::uint64_t size : sizes) {
    layout.counts.push_back(static_cast<int>(SegmentSize(size, done, segment)));
    layout.starts.push_back(start);
    start += layout.counts.back();
  }
  return layout;
}

void CommunicatorImpl::Append(std::vector<Bytes>& parts, const Bytes& received,
                              const Layout& layout) {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto begin = received.begin() + layout.starts[rank];
    parts[rank].insert(parts[rank].end(), begin, begin + layout.counts[rank]);
  }
}

Result<std::vector<Bytes>> CommunicatorImpl::GatherInSegments(ByteSpan bytes, int root,
                                                              bool to_all) {
  const auto messages = GatherFirst(bytes);
  if (!messages.ok()) return std::move(messages).error();
  const Numbers sizes = SizesOf(*messages);
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  const std::uint64_t segment = SegmentLength(total);
  const bool receives = to_all || rank_ == root;

  std::vector<Bytes> parts = receives ? PartsOf(*messages) : std::vector<Bytes>();
  for (std::uint64_t done = FirstRoom(); done < longest; done += segment) {
    auto operation = std::make_unique<Operation>();
    const auto rest =
        bytes.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(done, bytes.size())));
    const auto count = static_cast<std::size_t>(SegmentSize(bytes.size(), done, segment));
    operation->send.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
    operation->receive_layout = LayOut(sizes, done, segment);
    if (receives) operation->receive.resize(operation->receive_layout.TotalBytes());
    auto moved = Run("MPI_Igatherv", std::move(operation), [this, root, to_all](Operation& op) {
      const int send_count = static_cast<int>(op.send.size());
      const Layout& layout = op.receive_layout;
      if (to_all) {
        return MPI_Iallgatherv(op.send.data(), send_count, MPI_BYTE, op.receive.data(),
                               layout.counts.data(), layout.starts.data(), MPI_BYTE, comm_,
                               op.request());
      }
      return MPI_Igatherv(op.send.data(), send_count, MPI_BYTE, op.receive.data(),
                          layout.counts.data(), layout.starts.data(), MPI_BYTE, root, comm_,
                          op.request());
    });
    if (!moved.ok()) return std::move(moved).error();
    Append(parts, (*moved)->receive, (*moved)->receive_layout);
  }
  return parts;
}

Result<std::vector<Bytes>> CommunicatorImpl::AllToAll(std::vector<Bytes> outgoing) {
  StartClock();
  // A rank with a wrong number of messages informs all ranks, so that no rank waits for it.
  constexpr std::uint64_t kWrong = std::numeric_limits<std::uint64_t>::max();
  const bool is_good = outgoing.size() == ranks();
  if (handover_) {
    if (!is_good) return Break(Status(Code::kComm, "this rank has not one message per rank"));
    return ExchangeInPairs(std::move(outgoing), kAllRanks, kAllRanks);
  }
  auto operation = std::make_unique<Operation>();
  const std::size_t size = sizeof(FirstHead) + FirstRoom();
  operation->send.resize(size * ranks());
  operation->receive.resize(size * ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const ByteSpan bytes = is_good ? ByteSpan(outgoing[rank]) : ByteSpan();
    PutFirst({.size = is_good ? bytes.size() : kWrong}, bytes,
             std::span(operation->send).subspan(rank * size, size));
  }
  auto sent = Run("MPI_Ialltoall", std::move(operation), [this, size](Operation& op) {
    return MPI_Ialltoall(op.send.data(), static_cast<int>(size), MPI_BYTE, op.receive.data(),
                         static_cast<int>(size), MPI_BYTE, comm_, op.request());
  });
  if (!sent.ok()) return std::move(sent).error();
  const Bytes& messages = (*sent)->receive;
  const Numbers sizes = SizesOf(messages);
  const auto wrong = std::find(sizes.begin(), sizes.end(), kWrong);
  if (wrong != sizes.end()) {
    return Break(Status(Code::kComm, "rank " + std::to_string(wrong - sizes.begin()) +
                                         " has not one message per rank"));
  }
  return ExchangeRest(std::move(outgoing), PartsOf(messages), sizes);
}

// Number of MPI calls that send the rest of a message after its first part.
std::size_t CommunicatorImpl::CountRest(const Bytes& bytes) const {
  if (bytes.size() <= FirstRoom()) return 0;
  return (bytes.size() - FirstRoom() - 1) / options_.message_max_bytes + 1;
}

// Only the sender and the receiver of a message need its length, and both know it. Nothing is
// copied: a rank sends from the caller's memory and receives into the returned memory.
Result<std::vector<Bytes>> CommunicatorImpl::ExchangeRest(std::vector<Bytes> outgoing,
                                                          std::vector<Bytes> incoming,
                                                          const Numbers& receive_sizes) {
  const auto own = static_cast<std::size_t>(rank_);
  incoming[own] = std::move(outgoing[own]);
  outgoing[own].clear();
  auto operation = std::make_unique<Operation>();
  operation->requests.clear();
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (rank != own) incoming[rank].resize(static_cast<std::size_t>(receive_sizes[rank]));
    const std::size_t received = rank == own ? 0 : CountRest(incoming[rank]);
    operation->requests.resize(operation->requests.size() + received + CountRest(outgoing[rank]),
                               MPI_REQUEST_NULL);
  }
  if (operation->requests.empty()) return incoming;
  operation->outgoing = std::move(outgoing);
  operation->incoming = std::move(incoming);
  auto moved = Run("the exchange by MPI_Isend and MPI_Irecv", std::move(operation),
                   [this](Operation& op) { return StartRest(op); });
  if (!moved.ok()) return std::move(moved).error();
  return std::move((*moved)->incoming);
}

// Starts the receives first, so that incoming messages have a destination. Each rank begins with
// its neighbour, so that the ranks do not all send to the same rank. MPI keeps the order of
// messages between two ranks, even across calls.
int CommunicatorImpl::StartRest(Operation& operation) const {
  constexpr int kTag = 0;
  auto request = operation.requests.begin();
  int code = MPI_SUCCESS;
  const auto for_segments = [&](Bytes& bytes, const auto& start) {
    std::size_t done = FirstRoom();
    for (std::size_t left = CountRest(bytes); left > 0 && code == MPI_SUCCESS; --left) {
      const std::size_t count = std::min(options_.message_max_bytes, bytes.size() - done);
      code = start(bytes.data() + done, static_cast<int>(count), &*request++);
      done += count;
    }
  };
  for (int i = 1; i < size_; ++i) {
    const int from = (rank_ + size_ - i) % size_;
    for_segments(operation.incoming[static_cast<std::size_t>(from)],
                 [&](std::byte* at, int count, MPI_Request* started) {
                   return MPI_Irecv(at, count, MPI_BYTE, from, kTag, comm_, started);
                 });
  }
  for (int i = 1; i < size_; ++i) {
    const int to = (rank_ + i) % size_;
    for_segments(operation.outgoing[static_cast<std::size_t>(to)],
                 [&](std::byte* at, int count, MPI_Request* started) {
                   return MPI_Isend(at, count, MPI_BYTE, to, kTag, comm_, started);
                 });
  }
  return code;
}

}  // namespace sealpoint::detail::mpi

#endif  // SEALPOINT_DETAIL_MPI_COMMUNICATOR_MESSAGES_H_
