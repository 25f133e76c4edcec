// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "sealpoint/saver.h"
#include "tests/support/process/in_child.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

// So that only the fork is a reason to refuse.
const SaveOptions kNothing{.allow_empty = true};

// The threads of an engine are not there in a child.
TEST(SaverForkTest, RefusesUseAfterForkBeforeItTouchesAnything) {
  FailingStorage* const storage = new FailingStorage(MemoryStorage());
  const auto engine = SmallEngine(std::shared_ptr<Storage>(storage));
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  const Declaration declaration;
  const Sources sources(declaration);
  EXPECT_TRUE(HoldsInChild([&] {
    const Status saved = saver->Save(SaveTarget::Directory("ckpt"), kNothing, sources).status();
    const Status made = Saver::Create(*engine, *comm).status();
    return saved.code() == Code::kInvalidArgument && made.code() == Code::kInvalidArgument &&
           storage->calls().empty();
  }));
}

TEST(SaverForkTest, RefusesSavesInTheBackgroundAfterFork) {
  const auto engine = SmallEngine(MemoryStorage());
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  const Declaration declaration;
  const Sources sources(declaration);
  const auto pending = saver->SaveAsync(SaveTarget::Directory("ckpt"), kNothing, sources).value();
  ASSERT_TRUE(pending->Wait().ok());
  EXPECT_TRUE(HoldsInChild([&] {
    const Status further = saver->SaveAsync(SaveTarget::Directory("b"), kNothing, sources).status();
    return pending->Poll() == SaveState::kFailed &&
           pending->Wait().status().code() == Code::kInvalidArgument &&
           further.code() == Code::kInvalidArgument;
  }));
  EXPECT_EQ(pending->Poll(), SaveState::kCommitted);
}

}  // namespace
}  // namespace sealpoint::testing
