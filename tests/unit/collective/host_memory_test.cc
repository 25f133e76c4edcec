// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/container/noise.h"
#include "tests/support/ranks/forwarding_communicator.h"
#include "tests/support/ranks/on_own_host.h"
#include "tests/support/ranks/with_ranks.h"

namespace sealpoint::internal::collective {
namespace {

using sealpoint::testing::ForwardingCommunicator;
using sealpoint::testing::NoiseBytes;

// Two ranks per host; counts what it sends, and may damage what others describe.
class TwoPerHost final : public ForwardingCommunicator {
 public:
  explicit TwoPerHost(Communicator& inner)
      : ForwardingCommunicator(inner), host_("host" + std::to_string(inner.rank() / 2)) {}
  const std::string& host() const override { return host_; }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    auto all = ForwardingCommunicator::AllGather(bytes);
    if (all.ok() && damaged_byte) {
      Bytes& first = all->front();
      // Far from the numbers of the threads of this process, which have its files.
      if (first.size() > 10) first[std::min(*damaged_byte, first.size() - 1)] ^= std::byte{0x20};
    }
    return all;
  }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    sent_bytes.clear();
    for (const Bytes& message : outgoing) sent_bytes.push_back(message.size());
    auto incoming = ForwardingCommunicator::AllToAll(std::move(outgoing));
    if (incoming.ok() && replaces_messages) incoming->assign(incoming->size(), replacement);
    return incoming;
  }

  // A byte of what rank 0 describes: names of hosts are shorter.
  std::optional<std::size_t> damaged_byte{};
  bool replaces_messages = false;
  Bytes replacement{};
  std::vector<std::size_t> sent_bytes{};

 private:
  std::string host_;
};

void OnFourRanks(const std::function<void(TwoPerHost&)>& body) {
  sealpoint::testing::WithRanks(4, [&](Communicator& inner) {
    TwoPerHost comm(inner);
    body(comm);
  });
}

// Some messages of 20,000 bytes do not fit.
constexpr std::uint64_t kOutboxBytes = 16'000;
std::uint64_t TwoOutboxes(std::size_t host_ranks) {
  EXPECT_LE(host_ranks, 2U);
  return 2 * kOutboxBytes;
}

Bytes MessageOf(int from, std::size_t to, std::uint64_t round) {
  const std::uint64_t seed = static_cast<std::uint64_t>(from) * 16 + to + round * 256;
  return NoiseBytes(seed, seed % 5 * 5000);
}

TEST(HostMemory, MessagesArriveWithinHostsAndBetweenThem) {
  OnFourRanks([](TwoPerHost& comm) {
    const auto memory = HostMemory::Create(comm, TwoOutboxes).value();
    ASSERT_NE(memory, nullptr);
    std::vector<Outbox> outboxes{{memory.get(), 0, kOutboxBytes},
                                 {memory.get(), kOutboxBytes, kOutboxBytes}};
    for (std::uint64_t round = 0; round < 20; ++round) {
      Outbox& outbox = outboxes[round % 2];
      std::vector<Bytes> messages;
      std::vector<std::uint64_t> sizes;
      for (std::size_t to = 0; to < 4; ++to) {
        messages.push_back(MessageOf(comm.rank(), to, round));
        sizes.push_back(messages.back().size());
      }
      const std::vector<MutableByteSpan> spans = outbox.Allot(sizes);
      for (std::size_t to = 0; to < 4; ++to) std::ranges::copy(messages[to], spans[to].begin());
      const std::vector<ByteSpan> arrived = outbox.Exchange(comm).value();
      for (std::size_t from = 0; from < 4; ++from) {
        const Bytes expected =
            MessageOf(static_cast<int>(from), static_cast<std::size_t>(comm.rank()), round);
        EXPECT_EQ(Bytes(arrived[from].begin(), arrived[from].end()), expected);
      }
      const std::size_t neighbor = static_cast<std::size_t>(comm.rank()) ^ 1;
      const std::uint64_t size = sizes[neighbor];
      EXPECT_TRUE(size > kOutboxBytes ? comm.sent_bytes[neighbor] == 1 + size
                                      : comm.sent_bytes[neighbor] <= 20)
          << "the message, or its place alone";
      ASSERT_TRUE(comm.Barrier().ok());
    }
  });
}

TEST(HostMemory, IsNotUsedIfOneRankCannotMapIt) {
  OnFourRanks([](TwoPerHost& comm) {
    // The number of the process, of the file, and the id in it.
    for (const std::size_t byte : {std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
      if (comm.rank() == 1) comm.damaged_byte = byte;
      EXPECT_EQ(HostMemory::Create(comm, TwoOutboxes).value(), nullptr) << byte;
      EXPECT_TRUE(comm.Barrier().ok());
    }
  });
}

TEST(HostMemory, IsNotUsedByRanksOfDifferentHosts) {
  sealpoint::testing::WithRanks(2, [](Communicator& inner) {
    sealpoint::testing::OnOwnHost comm(inner);
    EXPECT_EQ(HostMemory::Create(comm, TwoOutboxes).value(), nullptr);
  });
}

TEST(HostMemory, MalformedPlacesAreErrors) {
  OnFourRanks([](TwoPerHost& comm) {
    const auto memory = HostMemory::Create(comm, TwoOutboxes).value();
    ASSERT_NE(memory, nullptr);
    Outbox outbox(memory.get(), 0, kOutboxBytes);
    comm.replaces_messages = true;
    // Nothing, half a place, and places that end behind the memory.
    for (const Bytes& place : std::vector<Bytes>{
             {},
             {std::byte{0}, std::byte{1}},
             {std::byte{0}, std::byte{0}, std::byte{255}, std::byte{255}, std::byte{3}},
             {std::byte{0}, std::byte{255}, std::byte{255}, std::byte{3}, std::byte{1}}}) {
      outbox.Allot({1, 1, 1, 1});
      comm.replacement = place;
      EXPECT_EQ(outbox.Exchange(comm).status().code(), Code::kComm);
    }
  });
}

}  // namespace
}  // namespace sealpoint::internal::collective
