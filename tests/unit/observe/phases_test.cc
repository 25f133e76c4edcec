// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/observe/phase_recorder.h"

namespace sealpoint::internal::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "begin plan 0/0", …
std::string Describe(const PhaseEvent& event) {
  const std::string kind = event.kind == PhaseEvent::Kind::kBegin ? "begin "
                           : event.kind == PhaseEvent::Kind::kEnd ? "end "
                                                                  : "progress ";
  return kind + std::string(PhaseName(event.phase)) + " " + std::to_string(event.bytes_done) + "/" +
         std::to_string(event.bytes_total);
}

class PhaseRecorderTest : public ::testing::Test {
 protected:
  PhaseCallback Record() {
    return [this](const PhaseEvent& event) { events_.push_back(Describe(event)); };
  }

  std::vector<std::string> events_;
};

TEST_F(PhaseRecorderTest, TellsBeginProgressAndEnd) {
  PhaseRecorder recorder(Record());
  recorder.Begin(Phase::kWriteBlobs, 10);
  recorder.Progress(4);
  recorder.End();
  EXPECT_THAT(events_, ElementsAre("begin write blobs 0/10", "progress write blobs 4/10",
                                   "end write blobs 4/10"));
}

TEST_F(PhaseRecorderTest, EndsAPhaseWhenTheNextBegins) {
  PhaseRecorder recorder(Record());
  recorder.Begin(Phase::kPlan);
  recorder.Begin(Phase::kAgree);
  EXPECT_THAT(events_, ElementsAre("begin plan 0/0", "end plan 0/0", "begin agree 0/0"));
}

TEST_F(PhaseRecorderTest, EndsThePhaseUnderWayWhenItGoes) {
  {
    PhaseRecorder(Record()).Begin(Phase::kPublish);
  }
  EXPECT_THAT(events_, ElementsAre("begin publish 0/0", "end publish 0/0"));
}

TEST_F(PhaseRecorderTest, ReportsPhasesInOrderWithTheirBytes) {
  PhaseRecorder recorder({});
  recorder.Begin(Phase::kWriteBlobs);
  recorder.Progress(1000);
  recorder.Begin(Phase::kVerdict);
  recorder.End();
  const PhaseReport& report = recorder.report();
  ASSERT_EQ(report.phases.size(), 2u);
  EXPECT_EQ(report.phases[0].phase, Phase::kWriteBlobs);
  EXPECT_EQ(report.phases[0].bytes, 1000u);
  EXPECT_EQ(report.phases[1].bytes, 0u);
}

TEST(PhaseReportTest, AddsUpSeconds) {
  const PhaseReport report{.phases = {{Phase::kPlan, 1.0, 0}, {Phase::kAgree, 0.5, 0}}};
  EXPECT_DOUBLE_EQ(report.total_seconds(), 1.5);
  EXPECT_DOUBLE_EQ(report.seconds(Phase::kAgree), 0.5);
  EXPECT_DOUBLE_EQ(report.seconds(Phase::kRead), 0.0);
}

TEST(PhaseReportTest, PrintsNameTimeBytesAndRate) {
  const PhaseReport report{.phases = {{Phase::kRead, 2.0, 4'000'000}}};
  EXPECT_THAT(report.ToString(), HasSubstr("read"));
  EXPECT_THAT(report.ToString(), HasSubstr("2000.000 ms"));
  EXPECT_THAT(report.ToString(), HasSubstr("4.0 MB"));
  EXPECT_THAT(report.ToString(), HasSubstr("2.0 MB/s"));
}

TEST(PhaseNameTest, EveryPhaseHasAName) {
  for (int i = 0; i <= static_cast<int>(Phase::kRead); ++i) {
    EXPECT_NE(PhaseName(static_cast<Phase>(i)), "unknown") << i;
  }
}

}  // namespace
}  // namespace sealpoint::internal::observe
