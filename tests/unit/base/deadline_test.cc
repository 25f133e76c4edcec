// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sealpoint/limits.h"

namespace sealpoint {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const PolledDeadline::Clock::time_point kBegin{};

TEST(PolledDeadline, IsOverOnceTheLimitIsReached) {
  PolledDeadline deadline(seconds(10), kBegin);
  EXPECT_FALSE(deadline.IsOver(kBegin + milliseconds(9999)));
  EXPECT_TRUE(deadline.IsOver(kBegin + seconds(10)));
  EXPECT_TRUE(deadline.IsOver(kBegin + seconds(11)));
}

TEST(PolledDeadline, CountsLittleOfATimeInWhichNobodyLooked) {
  PolledDeadline deadline(2 * kPollGapMax, kBegin);
  EXPECT_FALSE(deadline.IsOver(kBegin + hours(3)));
  EXPECT_FALSE(deadline.IsOver(kBegin + hours(3) + kPollGapMax - milliseconds(1)));
  EXPECT_TRUE(deadline.IsOver(kBegin + hours(3) + kPollGapMax));
}

TEST(PolledDeadline, ResumeLeavesATimeOut) {
  PolledDeadline deadline(seconds(10), kBegin);
  deadline.Resume(kBegin + seconds(50));
  EXPECT_FALSE(deadline.IsOver(kBegin + seconds(59)));
  EXPECT_TRUE(deadline.IsOver(kBegin + seconds(60)));
}

TEST(PolledDeadline, NeverIsForEver) {
  PolledDeadline deadline(kForever, kBegin);
  for (int hour = 1; hour < 1000; ++hour) {
    EXPECT_FALSE(deadline.IsOver(kBegin + hours(hour)));
  }
}

}  // namespace
}  // namespace sealpoint
