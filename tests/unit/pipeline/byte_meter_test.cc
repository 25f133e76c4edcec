// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/byte_meter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sealpoint::internal::pipeline {
namespace {

using Calls = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(ByteMeter, ReportsTheSumAndTheTotal) {
  Calls calls;
  const PhaseCallback on_progress = [&](const PhaseEvent& event) {
    EXPECT_EQ(event.phase, Phase::kCompare);
    calls.emplace_back(event.bytes_done, event.bytes_total);
  };
  ByteMeter meter(ReportTo(on_progress, Phase::kCompare), 9);
  EXPECT_TRUE(meter.Add(4).ok());
  EXPECT_TRUE(meter.Add(5).ok());
  EXPECT_EQ(calls, (Calls{{4, 9}, {9, 9}}));
}

TEST(ByteMeter, MakesNoCallAfterAnEnd) {
  Calls calls;
  const PhaseCallback on_progress = [&](const PhaseEvent& event) {
    calls.emplace_back(event.bytes_done, event.bytes_total);
    throw std::runtime_error("enough");
  };
  ByteMeter meter(ReportTo(on_progress, Phase::kCopy));
  meter.set_bytes_total(9);
  EXPECT_EQ(meter.Add(4).ToString(), "Cancelled: ended by the progress callback: enough");
  EXPECT_EQ(meter.Add(5).code(), Code::kCancelled);
  EXPECT_EQ(calls, (Calls{{4, 9}}));
  EXPECT_EQ(meter.bytes_done(), 9U);
}

TEST(ByteMeter, CountsWithoutACallback) {
  const PhaseCallback none;
  ByteMeter meter(ReportTo(none, Phase::kCopy));
  EXPECT_TRUE(meter.Add(4).ok());
  EXPECT_EQ(meter.bytes_done(), 4U);
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
