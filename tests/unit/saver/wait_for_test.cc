// SPDX-License-Identifier: Apache-2.0
//
// Saves that end by themselves, and threads that wait for them beside the one that saves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

constexpr std::chrono::milliseconds kLong = std::chrono::minutes(1);
constexpr std::uint64_t kByteCount = 100;

// A tensor of this rank's own, and its saves.
class Client {
 public:
  explicit Client(SaveJob& job) : job_(job), name_("t." + std::to_string(job.rank())) {
    declaration_.Add({.tensor = ByteTensor(name_, kByteCount)}).value();
  }

  std::unique_ptr<PendingSave> Begin(const std::string& directory) {
    Sources sources(declaration_);
    EXPECT_TRUE(sources.Bind(name_, MemoryView::Host(content_)).ok());
    const auto target = SaveTarget::Directory(job_.path(directory));
    return job_.saver->SaveAsync(target, {}, sources).value();
  }

 private:
  SaveJob& job_;
  const std::string name_;
  const Bytes content_ = Content(name_, kByteCount);
  Declaration declaration_;
};

void OnThreads(const std::function<void(SaveJob&)>& body) {
  for (const int size : {1, 2, 3}) {
    WithRanks(size, [&](Communicator& comm) {
      SaveJob job(comm);
      body(job);
    });
  }
}

TEST(WaitForTest, ASaveOfThreadsEndsThoughNobodyPolls) {
  OnThreads([](SaveJob& job) {
    const auto pending = Client(job).Begin("ckpt");
    EXPECT_TRUE(pending->ends_by_itself());
    // This thread neither polls nor waits meanwhile.
    bool is_over = false;
    std::thread watcher([&] { is_over = pending->WaitFor(kLong); });
    watcher.join();
    EXPECT_TRUE(is_over);
    EXPECT_TRUE(OpenFrom(job.posix, job.path("ckpt")));
    EXPECT_TRUE(pending->Wait().ok());
  });
}

TEST(WaitForTest, ManyThreadsMayWaitWhileTheSaverGoesOn) {
  OnThreads([](SaveJob& job) {
    Client client(job);
    std::vector<std::unique_ptr<PendingSave>> pending;
    std::vector<std::thread> watchers;
    std::atomic<int> over = 0;
    for (const char* directory : {"a", "b", "c"}) {
      pending.push_back(client.Begin(directory));
      PendingSave* const save = pending.back().get();
      for (int i = 0; i < 2; ++i) {
        watchers.emplace_back([save, &over] {
          if (save->WaitFor(kLong) && save->Wait().ok()) ++over;
        });
      }
      pending.front()->Poll();
    }
    for (std::thread& watcher : watchers) watcher.join();
    EXPECT_EQ(over, 6);
  });
}

TEST(WaitForTest, TellsWhenTheSaveTookTooLong) {
  WithRanks(1, [](Communicator& comm) {
    SaveJob job(comm);
    constexpr std::chrono::milliseconds kDeadline(300);
    job.saver = Saver::Create(*job.engine, job.comm, {.background_deadline = kDeadline}).value();
    std::atomic<bool> is_open = false;
    job.storage->SetHook([&](StorageOp op, std::string_view) {
      while (op == StorageOp::kSyncFile && !is_open) std::this_thread::yield();
    });
    const auto pending = Client(job).Begin("ckpt");
    EXPECT_FALSE(pending->WaitFor(std::chrono::milliseconds(10)));
    EXPECT_TRUE(pending->WaitFor(kLong));
    EXPECT_EQ(pending->Wait().error().code(), Code::kTimeout);
    is_open = true;
    job.saver.reset();  // ends the thread that calls the hook
  });
}

}  // namespace
}  // namespace sealpoint::testing
