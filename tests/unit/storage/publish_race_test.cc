// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/storage/storage_fixture.h"

// If many publish under one name at the same time, exactly one succeeds.

namespace sealpoint {
namespace {

using testing::ReadFile;
using testing::WriteFile;

constexpr int kWriters = 4;
constexpr int kRounds = 25;

class PublishRace : public testing::StorageTest {};

TEST_P(PublishRace, OneThreadWinsAndItsContentStands) {
  for (const auto method : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
    for (int round = 0; round < kRounds; ++round) {
      const std::string target =
          std::to_string(static_cast<int>(method)) + "-" + std::to_string(round);
      std::atomic<int> ready = 0;
      std::atomic<int> winners = 0;
      std::atomic<int> winner = -1;
      std::vector<std::thread> threads;
      for (int writer = 0; writer < kWriters; ++writer) {
        threads.emplace_back([&, writer] {
          const std::string mine = target + "." + std::to_string(writer);
          WriteFile(*directory_, mine, std::to_string(writer));
          for (++ready; ready < kWriters;) std::this_thread::yield();
          const Status status = directory_->PublishExclusive(mine, target, method);
          if (status.ok()) {
            ++winners;
            winner = writer;
          } else {
            EXPECT_EQ(status.code(), Code::kAlreadyExists) << status.ToString();
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      ASSERT_EQ(winners, 1);
      ASSERT_EQ(ReadFile(*directory_, target), std::to_string(winner));
    }
  }
}

TEST_P(PublishRace, OneThreadCreatesAFile) {
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (int writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back([&, round] {
        const auto file = directory_->CreateExclusive(std::to_string(round), {});
        if (file.ok()) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1);
  }
}

TEST_P(PublishRace, ManyThreadsMakeTheSameDirectories) {
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = root_ + "/" + std::to_string(round) + "/a/b/c";
    std::vector<std::thread> threads;
    for (int writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back([&] {
        const Status status = storage_->CreateDirectories(path);
        EXPECT_TRUE(status.ok()) << status.ToString();
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(storage_->OpenDirectory(path).ok());
  }
}

SEALPOINT_FOR_ALL_STORAGES(PublishRace);

TEST(PublishRaceOfProcesses, OneWins) {
  const testing::TempDir temp;
  const auto opened = PosixStorage()->OpenDirectory(temp.path());
  ASSERT_TRUE(opened.ok());
  for (int round = 0; round < kRounds; ++round) {
    const std::string target = "COMMIT-" + std::to_string(round);
    std::vector<pid_t> children;
    for (int writer = 0; writer < kWriters; ++writer) {
      const std::string mine = target + "." + std::to_string(writer);
      WriteFile(**opened, mine, std::to_string(writer));
      const pid_t child = ::fork();
      if (child == 0) {
        const auto method =
            writer % 2 == 0 ? PublishMethod::kLink : PublishMethod::kRenameNoReplace;
        const Status status = (*opened)->PublishExclusive(mine, target, method);
        ::_exit(status.ok() ? 0 : status.code() == Code::kAlreadyExists ? 1 : 2);
      }
      children.push_back(child);
    }
    int winners = 0;
    for (const pid_t child : children) {
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status));
      ASSERT_LT(WEXITSTATUS(status), 2);
      winners += WEXITSTATUS(status) == 0 ? 1 : 0;
    }
    ASSERT_EQ(winners, 1);
  }
}

}  // namespace
}  // namespace sealpoint
