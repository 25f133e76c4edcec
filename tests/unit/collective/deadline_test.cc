// SPDX-License-Identifier: Apache-2.0
//
// A rank that never comes to a collective load, on threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sealpoint/collective_reader.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CollectiveDeadlineTest, ATimeOutSaysWhatItEndedAndWhere) {
  WithRanks(3, [](Communicator& comm) {
    CollectiveLoadJob job(comm, BuildMini({}));
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    comm.set_deadline(std::chrono::milliseconds(200));
    if (comm.rank() == comm.size() - 1) return;
    const auto report = reader->Load(ReadRequest());
    ASSERT_FALSE(report.ok());
    const Status& error = report.error();
    // Comm on a rank that hears of another one's time-out, or that the last one left.
    EXPECT_TRUE(error.code() == Code::kTimeout || error.code() == Code::kComm) << error.ToString();
    EXPECT_THAT(error.message(), StartsWith("collective load, phase plan read, of c: "));
    EXPECT_EQ(error.place().rank, comm.rank());
    const auto object = reader->ReadObject("rng");
    EXPECT_THAT(object.error().message(), HasSubstr("collective read of object rng of c: "));
    const auto newest = OpenNewest(comm, "runs", {.open = {.storage = job.storage}});
    EXPECT_THAT(newest.error().message(),
                StartsWith("collective opening of the newest checkpoint of runs: "));
    const auto other = CollectiveReader::Open(comm, "c", {.storage = job.storage});
    EXPECT_THAT(other.error().message(), StartsWith("collective opening of c: "));
  });
}

}  // namespace
}  // namespace sealpoint::testing
