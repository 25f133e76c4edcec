// SPDX-License-Identifier: Apache-2.0
//
// Collective loads in many batches: what is held at a time, that the next is read while one is
// exchanged, and that an error in any of them is the same on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/on_own_host.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kChunkBytes = 4096;
constexpr std::uint64_t kReplicaBytes = 40 * kChunkBytes;

const MiniContainer& ReplicaContainer() {
  static const MiniContainer container = [] {
    MiniSpec spec;
    spec.tensors.push_back(
        CutTensor("w", DType::kUInt8, {kReplicaBytes}, NoiseBytes(1, kReplicaBytes),
                  {Slice(0, kReplicaBytes / 2), Slice(kReplicaBytes / 2, kReplicaBytes)}, {0, 1}));
    return BuildMini(spec);
  }();
  return container;
}

// Measures the messages that are exchanged and can intervene before it.
class MeasuringCommunicator final : public OnOwnHost {
 public:
  using OnOwnHost::OnOwnHost;

  std::function<void(std::uint64_t sent_bytes)> before_exchange{};
  bool loses_payload = false;  // what others send of chunks does not arrive
  std::uint64_t sent_max_bytes = 0;
  std::uint64_t received_max_bytes = 0;

  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    const std::uint64_t sent = SizeOf(outgoing);
    if (before_exchange) before_exchange(sent);
    auto incoming = OnOwnHost::AllToAll(std::move(outgoing));
    sent_max_bytes = std::max(sent_max_bytes, sent);
    if (incoming.ok()) received_max_bytes = std::max(received_max_bytes, SizeOf(*incoming));
    if (incoming.ok() && loses_payload && SizeOf(*incoming) >= kChunkBytes) {
      std::fill(incoming->begin(), incoming->end(), Bytes());
    }
    return incoming;
  }

 private:
  static std::uint64_t SizeOf(const std::vector<Bytes>& messages) {
    std::uint64_t size = 0;
    for (const Bytes& message : messages) size += message.size();
    return size;
  }
};

// A rank that wants all of "w", as all do.
struct ReplicaJob {
  explicit ReplicaJob(Communicator& inner) : comm(inner), job(comm, ReplicaContainer()) {
    job.storage = std::make_shared<ReadingStorage>(job.memory, [this](const ReadCall&) {
      const bool fails = reads_left > 0 && --reads_left == 0;
      return fails ? Status(Code::kIo, "the storage is gone") : Status();
    });
    reader = job.Open();
    request.Add("w", MutableMemoryView::Host(bytes));
    // The tables are read, so that all reads from now on are of payload.
    EXPECT_TRUE(reader->Plan(request).ok());
    job.storage->ClearLog();
  }

  Result<CollectiveLoadReport> Load(const CollectiveLoadOptions& options) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    return reader->Load(request, {}, options);
  }
  // The same error on all, of this rank.
  void ExpectErrorOf(int rank, const Status& error, Code code) {
    EXPECT_THAT(error, HasCode(code));
    EXPECT_EQ(error.place().rank, rank);
    const std::string text = error.ToString();
    for (const Bytes& answer : comm.AllGather(AsBytes(text)).value())
      EXPECT_EQ(AsText(answer), text);
  }
  void ExpectStillInStep() {
    ASSERT_TRUE(Load({}).ok());
    EXPECT_EQ(bytes, NoiseBytes(1, kReplicaBytes));
  }

  MeasuringCommunicator comm;
  CollectiveLoadJob job;
  std::atomic<int> reads_left = 0;  // the last of these fails; 0: none
  std::unique_ptr<CollectiveReader> reader;
  Bytes bytes = Bytes(kReplicaBytes);
  ReadRequest request;
};

TEST(CollectiveBatchesTest, MessagesStayWithinTheBudget) {
  OnRanks([](Communicator& inner) {
    for (const std::uint64_t share : {std::uint64_t{1}, kChunkBytes, 3 * kChunkBytes}) {
      ReplicaJob rank(inner);
      const auto report = rank.Load({.memory_budget_bytes = 4 * share, .threads = 2});
      ASSERT_TRUE(report.ok()) << report.error().ToString();
      EXPECT_EQ(rank.bytes, NoiseBytes(1, kReplicaBytes));
      EXPECT_EQ(report->all_bytes_read, kReplicaBytes);
      const std::uint64_t bound = std::max(share, kChunkBytes);
      EXPECT_LE(rank.comm.sent_max_bytes, bound);
      EXPECT_LE(rank.comm.received_max_bytes, bound);
    }
  });
}

TEST(CollectiveBatchesTest, TheNextBatchIsReadWhileOneIsExchanged) {
  OnRanks([](Communicator& inner) {
    // If there are more ranks, some have nothing to read in the next batch.
    if (inner.size() == 1 || inner.size() > 3) return;
    ReplicaJob rank(inner);
    constexpr std::uint64_t kShare = 8 * kChunkBytes;
    const std::uint64_t batch = kShare / static_cast<std::uint64_t>(inner.size() - 1);
    std::uint64_t read_meanwhile = 0;
    rank.comm.before_exchange = [&](std::uint64_t sent_bytes) {
      // The first exchange of payload. No call of another rank can end this wait.
      if (sent_bytes < kChunkBytes || read_meanwhile > 0) return;
      for (int i = 0; i < 10000 && rank.job.PayloadRead() <= batch; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      read_meanwhile = rank.job.PayloadRead();
    };
    const auto report = rank.Load({.memory_budget_bytes = 4 * kShare});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_GT(read_meanwhile, batch);
    EXPECT_EQ(rank.bytes, NoiseBytes(1, kReplicaBytes));
  });
}

TEST(CollectiveBatchesTest, WhatIsReadIsNamedToTheStorageBefore) {
  OnRanks([](Communicator& inner) {
    ReplicaJob rank(inner);
    const auto report = rank.Load({.memory_budget_bytes = 16 * kChunkBytes});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    const ReadLog log = rank.job.storage->log();
    std::uint64_t named_bytes = 0;
    for (const NamedRange& named : log.named) {
      named_bytes += named.range.size;
      const auto first_after = log.reads.begin() + static_cast<std::ptrdiff_t>(named.reads_before);
      EXPECT_TRUE(std::any_of(first_after, log.reads.end(), [&](const ReadCall& read) {
        return read.name == named.range.name && read.offset == named.range.offset;
      })) << named.range.offset;
    }
    EXPECT_EQ(named_bytes, rank.job.PayloadRead());
  });
}

TEST(CollectiveBatchesTest, WhatDoesNotArriveIsNoticed) {
  OnRanks([](Communicator& inner) {
    if (inner.size() == 1) return;
    ReplicaJob rank(inner);
    rank.comm.loses_payload = true;
    EXPECT_THAT(rank.Load({}).status(), HasCode(Code::kComm));
  });
}

TEST(CollectiveBatchesTest, AReadThatFailsInAnyBatchFailsOnAll) {
  OnRanks([](Communicator& inner) {
    ReplicaJob rank(inner);
    for (const int failing : {0, inner.size() - 1}) {
      for (const int nth : {1, 2, 4}) {
        if (inner.rank() == failing) rank.reads_left = nth;
        const CollectiveLoadOptions options{.memory_budget_bytes = 4 * kChunkBytes, .threads = 2};
        const auto report = rank.Load(options);
        if (inner.size() == 1 && report.ok()) continue;  // it reads long ranges, and so few
        ASSERT_FALSE(report.ok());
        rank.ExpectErrorOf(failing, report.error(), Code::kIo);
        EXPECT_EQ(report.error().place().tensor, "w");
        rank.reads_left = 0;
        rank.ExpectStillInStep();
      }
    }
  });
}

TEST(CollectiveBatchesTest, ACallbackThatThrowsInAnyBatchCancelsOnAll) {
  OnRanks([](Communicator& inner) {
    if (inner.size() == 1) return;
    ReplicaJob rank(inner);
    const int throwing = inner.size() - 1;
    for (const std::uint64_t bytes : {kChunkBytes, kReplicaBytes / 2, kReplicaBytes}) {
      CollectiveLoadOptions options{.memory_budget_bytes = 4 * kChunkBytes};
      if (inner.rank() == throwing) {
        options.on_progress = [bytes](const PhaseEvent& event) {
          if (event.kind == PhaseEvent::Kind::kProgress && event.bytes_done >= bytes) {
            throw std::runtime_error("enough");
          }
        };
      }
      const auto report = rank.Load(options);
      ASSERT_FALSE(report.ok());
      rank.ExpectErrorOf(throwing, report.error(), Code::kCancelled);
      rank.ExpectStillInStep();
    }
  });
}

}  // namespace
}  // namespace sealpoint::testing
