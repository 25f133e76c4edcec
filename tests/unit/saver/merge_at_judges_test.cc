// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/merge_at_judges.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/wire.h"
#include "tests/support/saved_state.h"

namespace sealpoint::internal {
namespace {

using sealpoint::testing::HasCode;

// One rank, to which something else arrives than what it sent.
class AlteredArrivals final : public Communicator {
 public:
  AlteredArrivals(Result<std::vector<Bytes>> ids, Result<std::vector<Bytes>> entries)
      : ids_(std::move(ids)), entries_(std::move(entries)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& host() const override { return self_->host(); }
  void set_deadline(std::chrono::milliseconds) override {}
  Status Barrier() override { return {}; }
  Status Broadcast(Bytes& bytes, int root) override { return self_->Broadcast(bytes, root); }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    return self_->Gather(bytes, root);
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan) override { return ids_; }
  Result<std::vector<Bytes>> AllToAll(const std::vector<Bytes>&) override { return entries_; }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    return self_->AllReduceMax(values);
  }

 private:
  const std::unique_ptr<Communicator> self_ = SelfCommunicator();
  const Result<std::vector<Bytes>> ids_;
  const Result<std::vector<Bytes>> entries_;
};

Status Merge(Result<std::vector<Bytes>> ids, Result<std::vector<Bytes>> entries) {
  AlteredArrivals comm(std::move(ids), std::move(entries));
  return MergeAtJudges(comm, {}, Limits()).status();
}

const std::vector<Bytes> kNothing = {Bytes()};
const std::vector<Bytes> kGarbage = {Bytes(3)};
const Status kLate(Code::kTimeout, "late");

TEST(MergeAtJudges, WhoWroteNothingHasPinsOfNothing) {
  AlteredArrivals comm(kNothing, kNothing);
  const std::vector<Bytes> messages = {MergeAtJudges(comm, {}, Limits()).value()};
  const GatheredParts gathered = DecodeForCommitter(messages).value();
  EXPECT_TRUE(gathered.blobs.empty());
  EXPECT_EQ(gathered.parts.size(), 1u);
}

TEST(MergeAtJudges, RefusesBytesThatAreNoIds) {
  EXPECT_THAT(Merge(kGarbage, kNothing), HasCode(Code::kComm));
}

TEST(MergeAtJudges, RefusesBytesThatAreNoEntries) {
  EXPECT_THAT(Merge(kNothing, kGarbage), HasCode(Code::kComm));
}

TEST(MergeAtJudges, FailsWhereAnExchangeFails) {
  EXPECT_THAT(Merge(kLate, kNothing), HasCode(Code::kTimeout));
  EXPECT_THAT(Merge(kNothing, kLate), HasCode(Code::kTimeout));
}

TEST(MergeAtJudges, TheCommitterRefusesTruncatedMessages) {
  Bytes message;
  WireWriter out(message);
  out.Put(std::uint64_t{1});
  message.resize(message.size() + 96);  // a pin
  out.Put("part");
  ASSERT_TRUE(DecodeForCommitter(std::vector<Bytes>{message}).ok());
  for (std::size_t size = 0; size < message.size(); ++size) {
    const Bytes cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(DecodeForCommitter(std::vector<Bytes>{cut}).status(), HasCode(Code::kComm));
  }
}

}  // namespace
}  // namespace sealpoint::internal
