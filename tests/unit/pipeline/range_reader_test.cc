// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/range_reader.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "tests/unit/pipeline/fake_files.h"

namespace sealpoint::internal::pipeline {
namespace {

constexpr std::uint64_t kSize = 20000;

class ReadRangeTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<device::StagingPool> pool_ =
      device::StagingPool::Create(64 * kKiB, 8 * kKiB).value();
  const Bytes content_ = NumberedBytes(kSize);
  FakeReadableFile file_{content_, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(DirectAndBuffered, ReadRangeTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Direct" : "Buffered"; });

TEST_P(ReadRangeTest, GivesTheBytesOfAnyRange) {
  struct Range {
    std::uint64_t offset;
    std::uint64_t length;
  };
  for (const Range& range :
       {Range{0, 1}, Range{0, 4096}, Range{4095, 2}, Range{1, 8192}, Range{8192, 4096},
        Range{12345, 678}, Range{19999, 1}, Range{0, kSize}}) {
    const auto read = ReadRange(file_, *pool_, range.offset, range.length);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    const auto begin = content_.begin() + static_cast<std::ptrdiff_t>(range.offset);
    EXPECT_EQ(Bytes(read->bytes.begin(), read->bytes.end()),
              Bytes(begin, begin + static_cast<std::ptrdiff_t>(range.length)))
        << range.offset << "+" << range.length;
  }
}

TEST_P(ReadRangeTest, GivesNothingForAnEmptyRangeWithoutReading) {
  const auto read = ReadRange(file_, *pool_, kSize, 0);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->bytes.empty());
  EXPECT_TRUE(file_.reads().empty());
}

TEST_P(ReadRangeTest, FindsTheFileTooShortBeforeReading) {
  const auto read = ReadRange(file_, *pool_, 19000, 1001);
  EXPECT_EQ(read.status().code(), Code::kIncomplete);
  EXPECT_EQ(read.status().place().offset, 19000U);
  EXPECT_TRUE(file_.reads().empty());
}

TEST_P(ReadRangeTest, FindsTheFileTooShortForMemoryOfTheCaller) {
  Bytes memory(16384);
  const auto read = ReadRangeInto(file_, memory, 19000, 1001);
  EXPECT_EQ(read.status().code(), Code::kIncomplete);
  EXPECT_EQ(read.status().place().offset, 19000U);
  EXPECT_TRUE(file_.reads().empty());
}

TEST_P(ReadRangeTest, RefusesARangeWhoseEndOverflows) {
  const auto read =
      ReadRange(file_, *pool_, 4096, std::numeric_limits<std::uint64_t>::max() - 4095);
  EXPECT_EQ(read.status().code(), Code::kIncomplete);
  EXPECT_TRUE(file_.reads().empty());
}

TEST_P(ReadRangeTest, PassesOnWhatTheFileReports) {
  const Status failure(Code::kIo, "read: input/output error");
  file_.Fail(failure);
  EXPECT_EQ(ReadRange(file_, *pool_, 0, 10).status(), failure);
}

TEST(ReadRange, ReadsNoMoreThanWasAskedFromABufferedFile) {
  const auto pool = device::StagingPool::Create(64 * kKiB, 8 * kKiB).value();
  const FakeReadableFile file(NumberedBytes(kSize), false);
  ASSERT_TRUE(ReadRange(file, *pool, 5000, 10).ok());
  ASSERT_EQ(file.reads().size(), 1U);
  EXPECT_EQ(file.reads().front(), std::make_pair(std::uint64_t{5000}, std::uint64_t{10}));
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
