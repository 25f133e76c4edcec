// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "sealpoint/saver.h"
#include "tests/support/failing_storage.h"
#include "tests/support/saved_state.h"

namespace sealpoint::testing {
namespace {

// The threads of an engine are not there in a child.
TEST(SaverForkTest, RefusesUseAfterForkBeforeItTouchesAnything) {
  FailingStorage* const storage = new FailingStorage(MemoryStorage());
  const auto engine = SmallEngine(std::shared_ptr<Storage>(storage));
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  const Declaration declaration;
  const Sources sources(declaration);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs is a failure, too
    const Status saved = saver->Save(SaveTarget::Directory("ckpt"), {}, sources).status();
    const Status made = Saver::Create(*engine, *comm).status();
    _exit(saved.code() == Code::kInvalidArgument && made.code() == Code::kInvalidArgument &&
                  storage->calls().empty()
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SaverForkTest, RefusesSavesInTheBackgroundAfterFork) {
  const auto engine = SmallEngine(MemoryStorage());
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  const Declaration declaration;
  const Sources sources(declaration);
  const auto pending = saver->SaveAsync(SaveTarget::Directory("ckpt"), {}, sources).value();
  ASSERT_TRUE(pending->Wait().ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const Status further = saver->SaveAsync(SaveTarget::Directory("b"), {}, sources).status();
    const bool is_refused = pending->Poll() == SaveState::kFailed &&
                            pending->Wait().status().code() == Code::kInvalidArgument &&
                            further.code() == Code::kInvalidArgument;
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pending->Poll(), SaveState::kCommitted);
}

}  // namespace
}  // namespace sealpoint::testing
