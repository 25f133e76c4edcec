// SPDX-License-Identifier: Apache-2.0
//
// Broadcast, gather and exchange of MpiCommunicator; included by mpi_communicator.h and by nobody
// else.
#ifndef SEALPOINT_MPI_COMMUNICATOR_MESSAGES_H_
#define SEALPOINT_MPI_COMMUNICATOR_MESSAGES_H_

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "sealpoint/mpi_communicator.h"

namespace sealpoint {

// Room for bytes behind the head of a first message: with all ranks' messages at most 64 KiB meet
// on one rank, which costs no more than a message without any.
inline std::size_t MpiCommunicator::FirstRoom() const {
  constexpr std::size_t kRoomMax = 4096;
  constexpr std::size_t kTogetherMax = std::size_t{64} << 10;
  return std::min({kRoomMax, kTogetherMax / ranks(), options_.message_max_bytes / ranks()});
}

inline void MpiCommunicator::PutFirst(const FirstHead& head, ByteSpan bytes,
                                      std::span<std::byte> message) {
  std::memcpy(message.data(), &head, sizeof(head));
  const std::size_t count = std::min(bytes.size(), message.size() - sizeof(head));
  std::copy_n(bytes.begin(), count, message.begin() + sizeof(head));
}

inline MpiCommunicator::FirstHead MpiCommunicator::HeadOf(ByteSpan message) {
  FirstHead head;
  std::memcpy(&head, message.data(), sizeof(head));
  return head;
}

inline ByteSpan MpiCommunicator::BytesOf(ByteSpan message) {
  const std::uint64_t size = HeadOf(message).size;
  const ByteSpan room = message.subspan(sizeof(FirstHead));
  return room.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, room.size())));
}

inline Status MpiCommunicator::Broadcast(Bytes& bytes, int root) {
  if (Status status = CheckRoot(root); !status.ok()) return status;
  StartClock();
  auto operation = std::make_unique<Operation>();
  operation->send.resize(sizeof(FirstHead) + FirstRoom());
  if (rank_ == root) PutFirst({.size = bytes.size()}, bytes, operation->send);
  auto told = Run("MPI_Ibcast", std::move(operation), [this, root](Operation& op) {
    return MPI_Ibcast(op.send.data(), static_cast<int>(op.send.size()), MPI_BYTE, root, comm_,
                      &op.request);
  });
  if (!told.ok()) return std::move(told).error();
  const ByteSpan first = BytesOf((*told)->send);
  if (rank_ != root) {
    bytes.assign(static_cast<std::size_t>(HeadOf((*told)->send).size), {});
    std::copy(first.begin(), first.end(), bytes.begin());
  }
  return BroadcastBytes(bytes, root, first.size());
}

inline Status MpiCommunicator::BroadcastBytes(Bytes& bytes, int root, std::size_t begin) {
  for (std::size_t done = begin; done < bytes.size(); done += options_.message_max_bytes) {
    const std::size_t count = std::min(options_.message_max_bytes, bytes.size() - done);
    auto piece = std::make_unique<Operation>();
    piece->send = std::move(bytes);  // lent to the operation, without a copy
    auto sent = Run("MPI_Ibcast", std::move(piece), [this, root, done, count](Operation& op) {
      return MPI_Ibcast(op.send.data() + done, static_cast<int>(count), MPI_BYTE, root, comm_,
                        &op.request);
    });
    if (!sent.ok()) return std::move(sent).error();
    bytes = std::move((*sent)->send);
  }
  return {};
}

inline Result<std::vector<Bytes>> MpiCommunicator::Gather(ByteSpan bytes, int root) {
  if (Status status = CheckRoot(root); !status.ok()) return status;
  StartClock();
  return GatherInPieces(bytes, root, false);
}

inline Result<std::vector<Bytes>> MpiCommunicator::AllGather(ByteSpan bytes) {
  StartClock();
  return GatherInPieces(bytes, 0, true);
}

// The first messages of all ranks, one behind the other.
inline Result<Bytes> MpiCommunicator::GatherFirst(ByteSpan bytes) {
  auto operation = std::make_unique<Operation>();
  operation->send.resize(sizeof(FirstHead) + FirstRoom());
  PutFirst({.size = bytes.size()}, bytes, operation->send);
  operation->receive.resize(operation->send.size() * ranks());
  auto done = Run("MPI_Iallgather", std::move(operation), [this](Operation& op) {
    const int count = static_cast<int>(op.send.size());
    return MPI_Iallgather(op.send.data(), count, MPI_BYTE, op.receive.data(), count, MPI_BYTE,
                          comm_, &op.request);
  });
  if (!done.ok()) return std::move(done).error();
  return std::move((*done)->receive);
}

inline ByteSpan MpiCommunicator::MessageOf(std::size_t rank, ByteSpan messages) const {
  const std::size_t size = messages.size() / ranks();
  return messages.subspan(rank * size, size);
}

// What came with the first messages.
inline std::vector<Bytes> MpiCommunicator::PartsOf(ByteSpan messages) const {
  std::vector<Bytes> parts(ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const ByteSpan first = BytesOf(MessageOf(rank, messages));
    parts[rank].reserve(static_cast<std::size_t>(HeadOf(MessageOf(rank, messages)).size));
    parts[rank].assign(first.begin(), first.end());
  }
  return parts;
}

inline MpiCommunicator::Numbers MpiCommunicator::SizesOf(ByteSpan messages) const {
  Numbers sizes(ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    sizes[rank] = HeadOf(MessageOf(rank, messages)).size;
  }
  return sizes;
}

// Bytes of one rank that go into one call, when `total` bytes meet on one rank: all of them if
// they fit, else an equal share of what one call may move.
inline std::uint64_t MpiCommunicator::PieceLength(std::uint64_t total) const {
  const std::uint64_t limit = options_.message_max_bytes;
  return total <= limit ? limit : std::max<std::uint64_t>(1, limit / ranks());
}

inline std::uint64_t MpiCommunicator::PieceSize(std::uint64_t size, std::uint64_t done,
                                                std::uint64_t piece) {
  return size <= done ? 0 : std::min(piece, size - done);
}

inline MpiCommunicator::Layout MpiCommunicator::LayOut(const Numbers& sizes, std::uint64_t done,
                                                       std::uint64_t piece) {
  Layout layout;
  int start = 0;
  for (const std::uint64_t size : sizes) {
    layout.counts.push_back(static_cast<int>(PieceSize(size, done, piece)));
    layout.starts.push_back(start);
    start += layout.counts.back();
  }
  return layout;
}

inline void MpiCommunicator::Append(std::vector<Bytes>& parts, const Bytes& received,
                                    const Layout& layout) {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto begin = received.begin() + layout.starts[rank];
    parts[rank].insert(parts[rank].end(), begin, begin + layout.counts[rank]);
  }
}

inline Result<std::vector<Bytes>> MpiCommunicator::GatherInPieces(ByteSpan bytes, int root,
                                                                  bool to_all) {
  const auto messages = GatherFirst(bytes);
  if (!messages.ok()) return std::move(messages).error();
  const Numbers sizes = SizesOf(*messages);
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  const std::uint64_t piece = PieceLength(total);
  const bool receives = to_all || rank_ == root;

  std::vector<Bytes> parts = receives ? PartsOf(*messages) : std::vector<Bytes>();
  for (std::uint64_t done = FirstRoom(); done < longest; done += piece) {
    auto operation = std::make_unique<Operation>();
    const auto mine =
        bytes.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(done, bytes.size())));
    const auto count = static_cast<std::size_t>(PieceSize(bytes.size(), done, piece));
    operation->send.assign(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(count));
    operation->receive_layout = LayOut(sizes, done, piece);
    if (receives) operation->receive.resize(operation->receive_layout.TotalBytes());
    auto moved = Run("MPI_Igatherv", std::move(operation), [this, root, to_all](Operation& op) {
      const int send_count = static_cast<int>(op.send.size());
      const Layout& layout = op.receive_layout;
      if (to_all) {
        return MPI_Iallgatherv(op.send.data(), send_count, MPI_BYTE, op.receive.data(),
                               layout.counts.data(), layout.starts.data(), MPI_BYTE, comm_,
                               &op.request);
      }
      return MPI_Igatherv(op.send.data(), send_count, MPI_BYTE, op.receive.data(),
                          layout.counts.data(), layout.starts.data(), MPI_BYTE, root, comm_,
                          &op.request);
    });
    if (!moved.ok()) return std::move(moved).error();
    Append(parts, (*moved)->receive, (*moved)->receive_layout);
  }
  return parts;
}

inline Result<std::vector<Bytes>> MpiCommunicator::AllToAll(const std::vector<Bytes>& outgoing) {
  StartClock();
  // A rank with a wrong number of messages says so to all, instead of leaving them to wait.
  constexpr std::uint64_t kWrong = std::numeric_limits<std::uint64_t>::max();
  const bool is_good = outgoing.size() == ranks();
  FirstHead head{.size = kWrong};
  for (const Bytes& bytes : outgoing) {
    head.sent += bytes.size();
    head.longest = std::max<std::uint64_t>(head.longest, bytes.size());
  }
  auto operation = std::make_unique<Operation>();
  const std::size_t size = sizeof(FirstHead) + FirstRoom();
  operation->send.resize(size * ranks());
  operation->receive.resize(size * ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const ByteSpan bytes = is_good ? ByteSpan(outgoing[rank]) : ByteSpan();
    if (is_good) head.size = bytes.size();
    PutFirst(head, bytes, std::span(operation->send).subspan(rank * size, size));
  }
  auto told = Run("MPI_Ialltoall", std::move(operation), [this, size](Operation& op) {
    return MPI_Ialltoall(op.send.data(), static_cast<int>(size), MPI_BYTE, op.receive.data(),
                         static_cast<int>(size), MPI_BYTE, comm_, &op.request);
  });
  if (!told.ok()) return std::move(told).error();
  const Bytes& messages = (*told)->receive;
  const Numbers sizes = SizesOf(messages);
  const auto wrong = std::find(sizes.begin(), sizes.end(), kWrong);
  if (wrong != sizes.end()) {
    return Break(Status(Code::kComm, "rank " + std::to_string(wrong - sizes.begin()) +
                                         " has not one message per rank"));
  }
  return ExchangeRest(outgoing, messages);
}

// The ranks must make the same number of calls, of what all of them know.
inline Result<std::vector<Bytes>> MpiCommunicator::ExchangeRest(const std::vector<Bytes>& outgoing,
                                                                ByteSpan messages) {
  std::uint64_t sent_by_all = 0;
  std::uint64_t longest = 0;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const FirstHead head = HeadOf(MessageOf(rank, messages));
    sent_by_all += head.sent;
    longest = std::max(longest, head.longest);
  }
  const Numbers receive_sizes = SizesOf(messages);
  Numbers send_sizes(ranks());
  std::transform(outgoing.begin(), outgoing.end(), send_sizes.begin(),
                 [](const Bytes& bytes) { return bytes.size(); });
  std::uint64_t most = sent_by_all;  // that one rank sends or receives
  if (longest > FirstRoom() && sent_by_all > options_.message_max_bytes) {
    const auto total = [](const Numbers& sizes) {
      return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    };
    auto greatest = ReduceMax({std::max(total(send_sizes), total(receive_sizes))});
    if (!greatest.ok()) return std::move(greatest).error();
    most = greatest->front();
  }
  return ExchangeInPieces(outgoing, send_sizes, receive_sizes, PartsOf(messages),
                          {.longest = longest, .length = PieceLength(most)});
}

inline Result<std::vector<Bytes>> MpiCommunicator::ExchangeInPieces(
    const std::vector<Bytes>& outgoing, const Numbers& send_sizes, const Numbers& receive_sizes,
    std::vector<Bytes> parts, const Pieces& pieces) {
  const std::uint64_t piece = pieces.length;
  for (std::uint64_t done = FirstRoom(); done < pieces.longest; done += piece) {
    auto operation = std::make_unique<Operation>();
    operation->send_layout = LayOut(send_sizes, done, piece);
    operation->receive_layout = LayOut(receive_sizes, done, piece);
    operation->send.reserve(operation->send_layout.TotalBytes());
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (operation->send_layout.counts[rank] == 0) continue;
      const auto begin = outgoing[rank].begin() + static_cast<std::ptrdiff_t>(done);
      operation->send.insert(operation->send.end(), begin,
                             begin + operation->send_layout.counts[rank]);
    }
    operation->receive.resize(operation->receive_layout.TotalBytes());
    auto moved = Run("MPI_Ialltoallv", std::move(operation), [this](Operation& op) {
      return MPI_Ialltoallv(op.send.data(), op.send_layout.counts.data(),
                            op.send_layout.starts.data(), MPI_BYTE, op.receive.data(),
                            op.receive_layout.counts.data(), op.receive_layout.starts.data(),
                            MPI_BYTE, comm_, &op.request);
    });
    if (!moved.ok()) return std::move(moved).error();
    Append(parts, (*moved)->receive, (*moved)->receive_layout);
  }
  return parts;
}

}  // namespace sealpoint

#endif  // SEALPOINT_MPI_COMMUNICATOR_MESSAGES_H_
