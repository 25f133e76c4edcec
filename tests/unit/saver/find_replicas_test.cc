// SPDX-License-Identifier: Apache-2.0
//
// What other ranks send while replicas are found and compared is checked before it is used.
#include "lib/saver/find_replicas.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/base/wire.h"
#include "lib/comm/status_codec.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/saver/compare_replicas.h"
#include "lib/saver/declaration_faults.h"
#include "sealpoint/saver.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using internal::WireWriter;
using internal::saver::CompareReplicas;
using internal::saver::FindReplicas;

constexpr std::size_t kQuestionSize = 16;

// Answers that are questions as well: lists of holders, the answers, and the rest of one question.
Bytes Answers(std::uint64_t lists, const std::vector<std::uint64_t>& answers) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(lists);
  for (std::uint64_t i = 0; i < lists; ++i) out.PutSequence(std::vector<std::uint64_t>{0});
  out.Put(answers);
  bytes.resize(kQuestionSize);
  return bytes;
}

Status Find(const Declaration& held, Bytes arriving) {
  ForgedCommunicator comm(std::vector<Bytes>{std::move(arriving)});
  return FindReplicas(comm, held, {}).status();
}

Declaration OneSlot() {
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("a", 4)}).value();
  return declaration;
}

TEST(FindReplicas, RefusesQuestionsThatAreNoHashes) {
  EXPECT_TRUE(Find({}, Bytes(kQuestionSize)).ok());
  EXPECT_THAT(Find({}, Bytes(kQuestionSize - 1)), HasCode(Code::kComm));
}

TEST(FindReplicas, RefusesAnswersToOtherQuestions) {
  EXPECT_TRUE(Find(OneSlot(), Answers(0, {0})).ok());
  EXPECT_THAT(Find(OneSlot(), Answers(0, {})), HasCode(Code::kComm));
  EXPECT_THAT(Find(OneSlot(), Answers(0, {0, 0})), HasCode(Code::kComm));
}

TEST(FindReplicas, RefusesAListOfHoldersThatIsNotThere) {
  EXPECT_TRUE(Find(OneSlot(), Answers(1, {1})).ok());
  EXPECT_THAT(Find(OneSlot(), Answers(1, {2})), HasCode(Code::kComm));
}

TEST(DeclarationFaults, RefuseWhatIsNoListOfFaults) {
  const auto agree = [](std::uint64_t count, Bytes status) {
    Bytes bytes;
    WireWriter out(bytes);
    out.Put(count);
    out.Put("w");
    out.Put(AsText(status));
    ForgedCommunicator comm(std::vector<Bytes>{}, std::vector<Bytes>{bytes});
    return internal::saver::DeclarationFaults().Agree(comm);
  };
  const Bytes fault = internal::comm::EncodeStatus(Status(Code::kInvalidArgument, "a fault"));
  EXPECT_TRUE(agree(0, internal::comm::EncodeStatus({})).ok());
  EXPECT_EQ(agree(1, fault).message(), "a fault");
  EXPECT_THAT(agree(0, fault), HasCode(Code::kComm));
  EXPECT_THAT(agree(1, internal::comm::EncodeStatus({})), HasCode(Code::kComm));
  EXPECT_THAT(agree(1, Bytes(3)), HasCode(Code::kComm));
}

TEST(CompareReplicas, RefusesDigestsOfAListThatItDoesNotLead) {
  const auto engine = SmallEngine(MemoryStorage());
  const Declaration declaration;
  const auto compare = [&](Bytes arriving) {
    ForgedCommunicator comm(std::vector<Bytes>{std::move(arriving)});
    return CompareReplicas(comm, InternalAccess::PartsOf(*engine), Sources(declaration), {});
  };
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(Digest());          // of a list
  out.Put(std::uint64_t{0});  // digests
  EXPECT_TRUE(compare({}).ok());
  EXPECT_THAT(compare(bytes), HasCode(Code::kComm));
}

// Begins a save of nothing that finds replicas.
Status SaveOver(Communicator& comm) {
  const auto engine = SmallEngine(MemoryStorage());
  const auto saver = Saver::Create(*engine, comm, {.find_replicas = true}).value();
  const Declaration declaration;
  return saver
      ->Save(SaveTarget::Directory("ckpt"), {.step = 1, .allow_empty = true}, Sources(declaration))
      .status();
}

TEST(FindReplicas, FailsTheSaveWhereTheExchangeFails) {
  ForgedCommunicator comm(Status(Code::kTimeout, "late"));
  EXPECT_THAT(SaveOver(comm), HasCode(Code::kTimeout));
}

TEST(FindReplicas, NoReductionOfAnotherLengthIsTaken) {
  int nth = 1;
  for (;; ++nth) {
    ForgedCommunicator comm(std::vector<Bytes>{Bytes()});
    comm.ForgeReduction(nth);
    const Status saved = SaveOver(comm);
    if (!comm.has_forged_reduction()) break;
    EXPECT_THAT(saved, HasCode(Code::kComm)) << nth;
  }
  EXPECT_GT(nth, 2) << "the first is that of the call, and one follows what was found";
}

}  // namespace
}  // namespace sealpoint::testing
