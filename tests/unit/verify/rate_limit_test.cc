// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/rate_limit.h"

#include <chrono>

#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::verify::RateLimit;
using std::chrono::milliseconds;

constexpr RateLimit::Clock::time_point kBegin{};

TEST(RateLimit, EachByteCostsItsTime) {
  RateLimit limit(1000, kBegin);
  EXPECT_EQ(limit.Take(500, kBegin), kBegin + milliseconds(500));
  EXPECT_EQ(limit.Take(500, kBegin), kBegin + milliseconds(1000));
  EXPECT_EQ(limit.Take(1, kBegin + milliseconds(1000)), kBegin + milliseconds(1001));
}

// A thread that comes late has the tokens of 0.1 s, and not those of all the time.
TEST(RateLimit, CreditIsSmall) {
  RateLimit limit(1000, kBegin);
  EXPECT_EQ(limit.Take(100, kBegin + milliseconds(50)), kBegin + milliseconds(100));
  EXPECT_EQ(limit.Take(1000, kBegin + milliseconds(5000)), kBegin + milliseconds(5900));
}

TEST(RateLimit, ReadsAreSmallEnoughToBeCancelledSoon) {
  EXPECT_EQ(RateLimit(0).ReadSize(4 * kMiB, 8), 4 * kMiB);
  EXPECT_EQ(RateLimit(1).ReadSize(4 * kMiB, 8), 64 * kKiB);
  EXPECT_EQ(RateLimit(16 * kMiB).ReadSize(4 * kMiB, 1), 2 * kMiB);
  EXPECT_EQ(RateLimit(16 * kMiB).ReadSize(4 * kMiB, 3), 640 * kKiB);
  EXPECT_EQ(RateLimit(1000 * kMiB).ReadSize(4 * kMiB, 2), 4 * kMiB);
}

class LimitedVerification : public VerifyFixture, public ::testing::WithParamInterface<int> {};

TEST_P(LimitedVerification, KeepsToTheRate) {
  MiniSpec spec;
  const Shape shape = {8 * kMiB};
  spec.tensors.push_back(
      CutTensor("t", DType::kUInt8, shape, Bytes(8 * kMiB), {Region::Whole(shape)}));
  spec.tensors.back().chunk_size = kMiB;
  Store(spec);
  // Twice: the second verification has no credit of the first.
  for (int i = 0; i < 2; ++i) {
    constexpr std::uint64_t kRate = 40'000'000;
    const VerifyReport report =
        Verify("ckpt", {.threads = GetParam(), .bytes_per_second_max = kRate, .storage = storage_})
            .value();
    EXPECT_EQ(report.verdict, Verdict::kCommitted);
    const double rate = static_cast<double>(report.bytes_checked) / report.seconds;
    EXPECT_LT(rate, 1.01 * kRate);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, LimitedVerification, ::testing::Values(1, 3));

}  // namespace
}  // namespace sealpoint::testing
