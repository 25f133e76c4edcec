// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/save_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sealpoint::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void ExpectNoCheckpoint(const std::shared_ptr<Storage>& storage, const std::string& directory) {
  EXPECT_THAT(
      Checkpoint::Open(directory, {.storage = storage}).status(),
      AnyOf(HasCode(Code::kNotFound), HasCode(Code::kUncommitted), HasCode(Code::kNotACheckpoint)));
}

// Every writer has one blob, rank 0 two.
void ExpectNothingRemoved(const std::vector<std::string>& files, const TinyState& state) {
  const auto is_blob = [](const std::string& name) { return name.ends_with(".blob"); };
  EXPECT_EQ(std::count_if(files.begin(), files.end(), is_blob), state.rank_count + 1);
  EXPECT_THAT(files, Contains(HasSubstr(".index")));
}

void ExpectInjectedCause(const Status& status, const std::vector<StorageFault>& faults) {
  std::vector<Code> codes;
  for (const StorageFault& fault : faults) codes.push_back(fault.error.code());
  for (const Code code : codes) {
    if (code != Code::kIo && code != Code::kNoSpace) return;  // a false answer: many outcomes
  }
  EXPECT_THAT(status.message(), HasSubstr("injected"));
  EXPECT_TRUE(OutcomeIsUnknown(status) ||
              std::count(codes.begin(), codes.end(), status.code()) > 0);
  EXPECT_THAT(status.place().path, Not(IsEmpty()));
}

}  // namespace

bool BlocksCleanUp(const std::vector<StorageFault>& faults) {
  return std::any_of(faults.begin(), faults.end(), [](const StorageFault& fault) {
    // Before it removes finished blobs, a writer lists the directory.
    return fault.any_op || fault.op == StorageOp::kRemove || fault.op == StorageOp::kList ||
           fault.op == StorageOp::kRemoveDirectory;
  });
}

void ExpectSoundOutcome(const std::shared_ptr<Storage>& storage, const std::string& directory,
                        const TinyState& state, const Status& status,
                        const std::vector<StorageFault>& faults) {
  if (status.ok()) {
    EXPECT_EQ(FindDifference(storage, directory, state), "");
    return;
  }
  SCOPED_TRACE(status.ToString());
  ExpectInjectedCause(status, faults);
  const std::vector<std::string> files = FileNames(*storage, directory);
  const bool has_marker = std::find(files.begin(), files.end(), "COMMIT") != files.end();
  if (!OutcomeIsUnknown(status)) {
    EXPECT_FALSE(has_marker);
    ExpectNoCheckpoint(storage, directory);
    EXPECT_TRUE(files.empty() || BlocksCleanUp(faults)) << ::testing::PrintToString(files);
    return;
  }
  ExpectNothingRemoved(files, state);
  if (has_marker) {
    EXPECT_EQ(FindDifference(storage, directory, state), "");
  } else {
    ExpectNoCheckpoint(storage, directory);
  }
}

}  // namespace sealpoint::testing
