// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/load_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal::pipeline {
namespace {

constexpr std::uint64_t kMuch = kGiB;

int Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return CPU_COUNT(&set);
}

TEST(LoadThreads, AreThoseThatAreAskedFor) {
  EXPECT_EQ(LoadThreads("threads", 3, 100, 1).value(), 3);
  EXPECT_EQ(LoadThreads("threads", kThreadsMax, 1, 1).value(), kThreadsMax);
  for (const int wrong : {-1, kThreadsMax + 1}) {
    const Status status = LoadThreads("threads", wrong, 1, kMuch).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), ::testing::HasSubstr("threads is " + std::to_string(wrong)));
  }
}

TEST(LoadThreads, AreTheProcessorsDividedByTheProcessesThatShareThem) {
  const int processors = Processors();
  EXPECT_EQ(LoadThreads("threads", kThreadsAuto, 1, kMuch).value(), std::min(processors, 16));
  EXPECT_EQ(LoadThreads("threads", kThreadsAuto, processors, kMuch).value(), 1);
  EXPECT_EQ(LoadThreads("threads", kThreadsAuto, 8 * processors, kMuch).value(), 1);
}

TEST(LoadThreads, AreFourAtLeastForDirectReads) {
  EXPECT_EQ(DirectLoadThreads(1, kMuch), 4);
  EXPECT_EQ(DirectLoadThreads(16, kMuch), 16);
  EXPECT_EQ(DirectLoadThreads(1, 8 * kMiB), 2);
  EXPECT_EQ(DirectLoadThreads(1, 0), 1);
}

TEST(LoadThreads, AreFewForFewBytes) {
  EXPECT_EQ(LoadThreads("threads", kThreadsAuto, 1, 0).value(), 1);
  EXPECT_EQ(LoadThreads("threads", kThreadsAuto, 1, 8 * kMiB - 1).value(), 1);
  EXPECT_EQ(LoadThreads("threads", kThreadsAuto, 1, 8 * kMiB).value(), std::min(Processors(), 2));
}

// Sets variables of the environment, and puts them back.
class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                   "LOCAL_WORLD_SIZE", "SLURM_STEP_TASKS_PER_NODE"}) {
      const char* const value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? std::nullopt : std::optional(value));
      unsetenv(name);
    }
  }
  ~EnvironmentTest() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name, value->c_str(), 1);
      } else {
        unsetenv(name);
      }
    }
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};
using ProcessesByEnvironmentTest = EnvironmentTest;

TEST_F(ProcessesByEnvironmentTest, IsOneIfNobodySaysOtherwise) {
  EXPECT_EQ(ProcessesByEnvironment(), 1);
  for (const char* const wrong : {"", "x", "0", "-3"}) {
    setenv("LOCAL_WORLD_SIZE", wrong, 1);
    EXPECT_EQ(ProcessesByEnvironment(), 1) << wrong;
  }
}

TEST_F(ProcessesByEnvironmentTest, IsWhatTheLauncherSays) {
  const int ranks = 1000;  // more than any host has processors
  for (const char* const name :
       {"SLURM_STEP_TASKS_PER_NODE", "LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS"}) {
    setenv(name, (std::to_string(ranks) + "(x2)").c_str(), 1);
    EXPECT_EQ(ProcessesByEnvironment(), ranks) << name;
    EXPECT_EQ(ProcessesOfHost(), ranks) << name;
    unsetenv(name);
  }
  setenv("LOCAL_WORLD_SIZE", "x", 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "1000", 1);
  EXPECT_EQ(ProcessesByEnvironment(), ranks);
}

TEST_F(ProcessesByEnvironmentTest, IsOneIfEachIsBoundToItsOwnProcessors) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online < 2) GTEST_SKIP() << "needs two processors";
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  const std::string unbound = ProcessorsText();
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  setenv("LOCAL_WORLD_SIZE", std::to_string(online).c_str(), 1);
  const int bound = ProcessesByEnvironment();
  const std::string text = ProcessorsText();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(text, std::string(static_cast<std::size_t>(first), '0') + "1");
  if (CPU_COUNT(&before) > 1) EXPECT_NE(text, unbound);
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
