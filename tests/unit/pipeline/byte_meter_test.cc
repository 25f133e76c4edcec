// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/byte_meter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sealpoint::internal::pipeline {
namespace {

using Calls = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(ByteMeter, ReportsTheSumAndTheTotal) {
  Calls calls;
  const std::function<void(std::uint64_t, std::uint64_t)> on_progress =
      [&](std::uint64_t done, std::uint64_t total) { calls.emplace_back(done, total); };
  ByteMeter meter(ReportTo(on_progress), 9);
  EXPECT_TRUE(meter.Add(4).ok());
  EXPECT_TRUE(meter.Add(5).ok());
  EXPECT_EQ(calls, (Calls{{4, 9}, {9, 9}}));
}

TEST(ByteMeter, CallsNobodyAgainWhoEndedTheCall) {
  Calls calls;
  const std::function<bool(std::uint64_t, std::uint64_t)> on_progress = [&](std::uint64_t done,
                                                                            std::uint64_t total) {
    calls.emplace_back(done, total);
    return false;
  };
  ByteMeter meter(AskDuringCopy(on_progress));
  meter.set_bytes_total(9);
  EXPECT_EQ(meter.Add(4).code(), Code::kCancelled);
  EXPECT_EQ(meter.Add(5).code(), Code::kCancelled);
  EXPECT_EQ(calls, (Calls{{4, 9}}));
  EXPECT_EQ(meter.bytes_done(), 9U);
}

TEST(ByteMeter, TakesAnExceptionForAnEnd) {
  const std::function<bool(std::uint64_t)> throws_in_copy = [](std::uint64_t) -> bool { throw 1; };
  EXPECT_EQ(ByteMeter(AskDuringCopy(throws_in_copy)).Add(1).ToString(),
            "Cancelled: the copy was given up by its caller");
  const std::function<void(std::uint64_t, std::uint64_t)> throws =
      [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); };
  EXPECT_EQ(ByteMeter(ReportTo(throws)).Add(1).ToString(), "Cancelled: on_progress threw: enough");
}

TEST(ByteMeter, CountsWithoutACallback) {
  const std::function<bool(std::uint64_t)> none;
  ByteMeter meter(AskDuringCopy(none));
  EXPECT_TRUE(meter.Add(4).ok());
  EXPECT_EQ(meter.bytes_done(), 4U);
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
