// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/deadline.h"

#include <gtest/gtest.h>

namespace sealpoint {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const AttendedDeadline::Clock::time_point kBegin{};

TEST(AttendedDeadline, IsOverOnceTheLimitIsReached) {
  AttendedDeadline deadline(seconds(10), kBegin);
  EXPECT_FALSE(deadline.IsOver(kBegin + milliseconds(9999)));
  EXPECT_TRUE(deadline.IsOver(kBegin + seconds(10)));
  EXPECT_TRUE(deadline.IsOver(kBegin + seconds(11)));
}

TEST(AttendedDeadline, CountsLittleOfATimeInWhichNobodyLooked) {
  AttendedDeadline deadline(2 * kUnattendedMax, kBegin);
  EXPECT_FALSE(deadline.IsOver(kBegin + hours(3)));
  EXPECT_FALSE(deadline.IsOver(kBegin + hours(3) + kUnattendedMax - milliseconds(1)));
  EXPECT_TRUE(deadline.IsOver(kBegin + hours(3) + kUnattendedMax));
}

TEST(AttendedDeadline, ResumeLeavesATimeOut) {
  AttendedDeadline deadline(seconds(10), kBegin);
  deadline.Resume(kBegin + seconds(50));
  EXPECT_FALSE(deadline.IsOver(kBegin + seconds(59)));
  EXPECT_TRUE(deadline.IsOver(kBegin + seconds(60)));
}

TEST(AttendedDeadline, NeverIsForEver) {
  for (const milliseconds limit : {kForever, milliseconds::max()}) {
    AttendedDeadline deadline(limit, kBegin);
    for (int hour = 1; hour < 1000; ++hour) {
      EXPECT_FALSE(deadline.IsOver(kBegin + hours(hour)));
    }
  }
}

}  // namespace
}  // namespace sealpoint
