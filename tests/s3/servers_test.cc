// SPDX-License-Identifier: Apache-2.0
// Run by servers_test.py, which starts the server with the bucket "bucket".
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/object_store.h"
#include "sealpoint/s3.h"
#include "sealpoint/series.h"
#include "tests/s3/save_one.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kSize = 12 * kMiB;

S3Options ServerOptions() { return {.part_size_bytes = 5 * kMiB, .get_size_bytes = 1 * kMiB}; }

std::shared_ptr<Storage> ServerStorage() {
  return ObjectStorage(S3Store("bucket", ServerOptions()).value()).value();
}

TEST(SeaweedFs, ASeriesIsSavedLoadedPrunedAndVerified) {
  const auto storage = ServerStorage();
  const std::string root = "s3://bucket/runs/a b+1";
  const Series series(root, storage);
  CommitOptions options;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    options.step = step;
    const auto saved = SaveOne(storage, root + "/step-" + std::to_string(step), options,
                               NoiseBytes(static_cast<unsigned>(step), kSize));
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    options.parent = saved->as_parent();
  }
  const auto newest = series.Newest();
  ASSERT_TRUE(newest.ok()) << newest.error().ToString();
  EXPECT_EQ(newest->entry.step, 3U);
  EXPECT_TRUE(LoadWhole(*OpenFrom(storage, newest->entry.path), "w") == NoiseBytes(3, kSize));
  EXPECT_EQ(FindDamage(storage, newest->entry.path), "");
  const PruneReport report = series.Prune({.keep_last = 2});
  ASSERT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_EQ(series.List()->entries.size(), 2U);
  EXPECT_TRUE(FileNames(*storage, root + "/step-1").empty());
}

TEST(SeaweedFs, OneOfThreeCommittersWins) {
  // Each with a client of its own, as in three processes.
  const std::array storages = {ServerStorage(), ServerStorage(), ServerStorage()};
  const char* const rounds = std::getenv("SEALPOINT_TEST_RACES");
  for (int round = 0; round < std::atoi(rounds != nullptr ? rounds : "20"); ++round) {
    const std::string directory = "s3://bucket/races/" + std::to_string(round);
    std::atomic<int> winners = 0;
    std::array<Status, 3> lost;
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
          const auto saved = SaveOne(storages.at(i), directory, {}, NoiseBytes(i, 5000));
          if (saved.ok()) ++winners;
          lost[i] = saved.error();
        });
      }
    }
    ASSERT_EQ(winners, 1) << round << " " << lost[0].ToString() << "; " << lost[1].ToString()
                          << "; " << lost[2].ToString();
    for (const Status& each : lost) {
      ASSERT_TRUE(each.ok() || each.code() == Code::kAlreadyExists) << each.ToString();
    }
  }
}

TEST(SeaweedFs, WrongKeysAndBucketsAreNamed) {
  S3Options options = ServerOptions();
  const auto nowhere = S3Store("nobucket", options).value();
  EXPECT_NE(nowhere->List("", "").error().message().find("check the bucket's name"),
            std::string::npos);
  options.credentials = []() -> Result<S3Credentials> {
    return S3Credentials{.access_key_id = "testkey", .secret_access_key = "wrong"};
  };
  const Status status = S3Store("bucket", options).value()->Put("k", {});
  EXPECT_NE(status.message().find("the secret key does not belong"), std::string::npos)
      << status.ToString();
}

// It ignores the condition: two markers would be put.
TEST(Rclone, IsRefusedBeforeTheMarker) {
  const auto storage = ServerStorage();
  const auto saved = SaveOne(storage, "s3://bucket/run", {}, NoiseBytes(1, 5000));
  EXPECT_THAT(saved.error(), FailsRule(Code::kUnsupported, "R-CMT-04"));
  for (const std::string& name : FileNames(*storage, "s3://bucket/run")) {
    EXPECT_NE(name, "COMMIT");
  }
}

}  // namespace
}  // namespace sealpoint::testing
