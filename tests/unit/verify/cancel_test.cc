// SPDX-License-Identifier: Apache-2.0
//
// A progress callback that throws ends the verification soon, and nothing else does.
#include <atomic>
#include <memory>
#include <stdexcept>

#include "tests/support/storage/reading_storage.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

class CancelTest : public VerifyFixture, public ::testing::WithParamInterface<int> {
 protected:
  // 40 MiB in chunks of 1 MiB, in one blob.
  void SetUp() override {
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("t", DType::kUInt8, {1}, Bytes(1), {Region::Whole({1})}));
    MiniTensor& tensor = spec.tensors.back();
    tensor.shape = {40 * kMiB};
    tensor.chunk_size = kMiB;
    tensor.shards = {{.region = Region::Whole(tensor.shape), .bytes = Bytes(40 * kMiB)}};
    Store(spec);
  }
  // The callback throws at its n-th call, and once so many bytes are done.
  Result<VerifyReport> CheckThrowingAt(int nth, VerifyLevel level, std::uint64_t done = ~0ULL) {
    calls_ = 0;
    const auto counting = std::make_shared<ReadingStorage>(storage_, [this](const ReadCall& call) {
      bytes_read_ += call.size;
      return Status();
    });
    const auto throwing = [this, nth, done](const PhaseEvent& progress) {
      if (++calls_ >= nth || progress.bytes_done >= done) {
        throw std::runtime_error("thrown by a test");
      }
    };
    return Verify("ckpt", {.level = level,
                           .threads = GetParam(),
                           .storage = counting,
                           .on_progress = throwing,
                           .on_violation = [this](const Status&) { ++violations_; }});
  }

  std::atomic<int> calls_ = 0;
  std::atomic<std::uint64_t> bytes_read_ = 0;
  std::atomic<int> violations_ = 0;
};

TEST_P(CancelTest, AtEachCall) {
  int cancelled = 0;
  for (int nth = 1; calls_ >= nth - 1; ++nth) {
    const Status status = CheckThrowingAt(nth, VerifyLevel::kFull).status();
    EXPECT_LE(calls_, nth) << "called after it has thrown";
    if (calls_ < nth) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      continue;
    }
    ++cancelled;
    EXPECT_EQ(status.code(), Code::kCancelled) << "at call " << nth;
    EXPECT_THAT(status.message(), HasSubstr("thrown by a test"));
  }
  EXPECT_GT(cancelled, 16);
  EXPECT_EQ(violations_, 0);
}

TEST_P(CancelTest, LittleIsReadAfterwards) {
  EXPECT_EQ(CheckThrowingAt(1000, VerifyLevel::kFull, kMiB).status().code(), Code::kCancelled);
  EXPECT_LT(bytes_read_, 20 * kMiB);
}

TEST_P(CancelTest, AtTheOtherLevels) {
  for (const VerifyLevel level : {VerifyLevel::kFiles, VerifyLevel::kStructure}) {
    EXPECT_EQ(CheckThrowingAt(1, level).status().code(), Code::kCancelled);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CancelTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace sealpoint::testing
