// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/merge_at_owners.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::internal::saver {
namespace {

using sealpoint::testing::ForgedCommunicator;
using sealpoint::testing::HasCode;

Status Merge(Result<std::vector<Bytes>> ids, Result<std::vector<Bytes>> entries) {
  ForgedCommunicator comm(std::move(entries), std::move(ids));
  const auto message = MergeAtOwners(comm, {}, false, {}, Limits());
  return message.ok() ? comm::DecodeResult(*message, 0).status() : message.error();
}

const std::vector<Bytes> kNothing = {Bytes()};
const std::vector<Bytes> kNoIds = {comm::EncodeResult(*SelfCommunicator(), Bytes())};
const std::vector<Bytes> kGarbage = {Bytes(3)};
const Status kLate(Code::kTimeout, "late");

TEST(MergeAtOwners, WhoWroteNothingHasPinsOfNothing) {
  ForgedCommunicator comm(kNothing, kNoIds);
  const std::vector<Bytes> messages = {
      comm::DecodeResult(MergeAtOwners(comm, {}, false, {}, Limits()).value(), 0).value()};
  const GatheredParts gathered = DecodeForCommitter(messages).value();
  EXPECT_TRUE(gathered.blobs.empty());
  EXPECT_EQ(gathered.parts.size(), 1u);
}

TEST(MergeAtOwners, RefusesBytesThatAreNoIds) {
  EXPECT_THAT(Merge(kGarbage, kNothing), HasCode(Code::kComm));
}

TEST(MergeAtOwners, RefusesBytesThatAreNoEntries) {
  EXPECT_THAT(Merge(kNoIds, kGarbage), HasCode(Code::kComm));
}

TEST(MergeAtOwners, FailsWhereAnExchangeFails) {
  EXPECT_THAT(Merge(kLate, kNothing), HasCode(Code::kTimeout));
  EXPECT_THAT(Merge(kNoIds, kLate), HasCode(Code::kTimeout));
}

TEST(MergeAtOwners, TheCommitterRefusesTruncatedMessages) {
  Bytes message;
  WireWriter out(message);
  out.Put(std::uint64_t{1});
  message.resize(message.size() + 69);  // a pin and its features: four ids and five numbers
  out.Put("part");
  ASSERT_TRUE(DecodeForCommitter(std::vector<Bytes>{message}).ok());
  for (std::size_t size = 0; size < message.size(); ++size) {
    const Bytes cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(DecodeForCommitter(std::vector<Bytes>{cut}).status(), HasCode(Code::kComm));
  }
}

}  // namespace
}  // namespace sealpoint::internal::saver
