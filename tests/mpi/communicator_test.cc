// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/ranks/with_ranks.h"

// What every communicator owes its callers; compiled for threads and for MPI.

namespace sealpoint {
namespace {

using testing::RankCounts;
using testing::WithRanks;

// Recognisable content that differs by sender and receiver; rank 1 sends nothing to rank 0.
Bytes Letter(int from, int to) {
  if (from == 1 && to == 0) return {};
  const auto length = static_cast<std::size_t>(1 + 7 * from + 3 * to);
  return Bytes(length, static_cast<std::byte>(16 * from + to));
}

void ForEachRankCount(const std::function<void(Communicator&)>& body) {
  for (const int size : RankCounts()) WithRanks(size, body);
}

TEST(Communicator, KnowsItsRankSizeAndHost) {
  for (const int size : RankCounts()) {
    WithRanks(size, [size](Communicator& comm) {
      EXPECT_EQ(comm.size(), size);
      EXPECT_GE(comm.rank(), 0);
      EXPECT_LT(comm.rank(), size);
      EXPECT_FALSE(comm.host().empty());
    });
  }
}

TEST(Communicator, RanksAreDistinct) {
  ForEachRankCount([](Communicator& comm) {
    const std::string mine = std::to_string(comm.rank());
    const auto all = comm.AllGather(AsBytes(mine));
    ASSERT_TRUE(all.ok()) << all.error().ToString();
    ASSERT_EQ(all->size(), static_cast<std::size_t>(comm.size()));
    for (std::size_t rank = 0; rank < all->size(); ++rank) {
      EXPECT_EQ(AsText((*all)[rank]), std::to_string(rank));
    }
  });
}

TEST(Communicator, BroadcastsFromEveryRootAndReplacesOtherSizes) {
  ForEachRankCount([](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      // What is there before is of another length on every rank.
      Bytes bytes(static_cast<std::size_t>(comm.rank()), std::byte{0xee});
      if (comm.rank() == root) bytes = Letter(root, 2);
      const Status status = comm.Broadcast(bytes, root);
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(bytes, Letter(root, 2));
    }
  });
}

TEST(Communicator, BroadcastsNothing) {
  ForEachRankCount([](Communicator& comm) {
    Bytes bytes(comm.rank() == 0 ? 0 : 5);
    ASSERT_TRUE(comm.Broadcast(bytes, 0).ok());
    EXPECT_TRUE(bytes.empty());
  });
}

TEST(Communicator, GathersDifferentSizesOnTheRootOnly) {
  ForEachRankCount([](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      const auto gathered = comm.Gather(Letter(comm.rank(), 0), root);
      ASSERT_TRUE(gathered.ok()) << gathered.error().ToString();
      if (comm.rank() != root) {
        EXPECT_TRUE(gathered->empty());
        continue;
      }
      ASSERT_EQ(gathered->size(), static_cast<std::size_t>(comm.size()));
      for (int rank = 0; rank < comm.size(); ++rank) {
        EXPECT_EQ((*gathered)[static_cast<std::size_t>(rank)], Letter(rank, 0)) << rank;
      }
    }
  });
}

TEST(Communicator, AllGathersDifferentSizes) {
  ForEachRankCount([](Communicator& comm) {
    const auto gathered = comm.AllGather(Letter(comm.rank(), 0));
    ASSERT_TRUE(gathered.ok()) << gathered.error().ToString();
    ASSERT_EQ(gathered->size(), static_cast<std::size_t>(comm.size()));
    for (int rank = 0; rank < comm.size(); ++rank) {
      EXPECT_EQ((*gathered)[static_cast<std::size_t>(rank)], Letter(rank, 0)) << rank;
    }
  });
}

TEST(Communicator, ExchangesEveryPair) {
  ForEachRankCount([](Communicator& comm) {
    std::vector<Bytes> outgoing;
    for (int to = 0; to < comm.size(); ++to) outgoing.push_back(Letter(comm.rank(), to));
    const auto incoming = comm.AllToAll(outgoing);
    ASSERT_TRUE(incoming.ok()) << incoming.error().ToString();
    ASSERT_EQ(incoming->size(), static_cast<std::size_t>(comm.size()));
    for (int from = 0; from < comm.size(); ++from) {
      EXPECT_EQ((*incoming)[static_cast<std::size_t>(from)], Letter(from, comm.rank())) << from;
    }
  });
}

TEST(Communicator, ReducesToTheMaximumOfUnsignedNumbers) {
  ForEachRankCount([](Communicator& comm) {
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    const auto last = static_cast<std::uint64_t>(comm.size() - 1);
    // The second is above the range of a signed number on rank 0 alone.
    const auto greatest = comm.AllReduceMax({rank, rank == 0 ? ~std::uint64_t{0} : 1, last - rank});
    ASSERT_TRUE(greatest.ok()) << greatest.error().ToString();
    EXPECT_EQ(*greatest, (std::vector<std::uint64_t>{last, ~std::uint64_t{0}, last}));
  });
}

TEST(Communicator, ReducesNoNumbers) {
  ForEachRankCount([](Communicator& comm) {
    const auto greatest = comm.AllReduceMax({});
    ASSERT_TRUE(greatest.ok()) << greatest.error().ToString();
    EXPECT_TRUE(greatest->empty());
  });
}

TEST(Communicator, CarriesMegabytes) {
  ForEachRankCount([](Communicator& comm) {
    const auto length = static_cast<std::size_t>(kMiB + 1);
    const Bytes mine(length, static_cast<std::byte>(comm.rank()));
    const auto gathered = comm.AllGather(mine);
    ASSERT_TRUE(gathered.ok()) << gathered.error().ToString();
    for (std::size_t rank = 0; rank < gathered->size(); ++rank) {
      EXPECT_EQ((*gathered)[rank], Bytes(length, static_cast<std::byte>(rank))) << rank;
    }
  });
}

TEST(Communicator, KeepsManyCallsInOrder) {
  ForEachRankCount([](Communicator& comm) {
    for (std::uint64_t step = 0; step < 200; ++step) {
      const auto greatest = comm.AllReduceMax({step});
      ASSERT_TRUE(greatest.ok()) << greatest.error().ToString();
      ASSERT_EQ(greatest->front(), step);
      ASSERT_TRUE(comm.Barrier().ok());
    }
  });
}

// Everybody must have come before anybody goes on; one clock serves all ranks of a host.
TEST(Communicator, BarrierWaitsForAll) {
  ForEachRankCount([](Communicator& comm) {
    if (comm.rank() == comm.size() - 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const auto before = std::chrono::steady_clock::now().time_since_epoch().count();
    ASSERT_TRUE(comm.Barrier().ok());
    const auto after = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto last_arrival = comm.AllReduceMax({static_cast<std::uint64_t>(before)});
    ASSERT_TRUE(last_arrival.ok());
    EXPECT_GE(static_cast<std::uint64_t>(after), last_arrival->front());
  });
}

}  // namespace
}  // namespace sealpoint
