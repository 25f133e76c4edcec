// SPDX-License-Identifier: Apache-2.0
//
// Saves in the background that fail, and that nobody asks about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/saver.h"
#include "tests/support/process/in_child.h"
#include "tests/support/state/save_job.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr char kLine[] =
    "sealpoint: save of step 7 to ckpt failed in the background, and its result was not requested: "
    "Io: injected";

class UnobservedFailureTest : public ::testing::Test {
 protected:
  UnobservedFailureTest() {
    declaration_.Add({.tensor = ByteTensor("t", content_.size())}).value();
    options_.on_unobserved_failure = [this](std::string_view save, const Status& why) {
      heard_.push_back(std::string(save) + ": " + std::string(CodeName(why.code())));
    };
    storage_->Fail({.op = StorageOp::kSyncFile});
  }

  // A save that is over, and failed unless the storage was healed.
  std::unique_ptr<PendingSave> MakeEnded() {
    saver_ = Saver::Create(*engine_, *comm_, options_).value();
    Sources sources(declaration_);
    EXPECT_TRUE(sources.Bind("t", MemoryView::Host(content_)).ok());
    auto pending = saver_->SaveAsync(SaveTarget::Directory("ckpt"), {.step = 7}, sources).value();
    while (pending->Poll() == SaveState::kRunning) pending->WaitFor(std::chrono::milliseconds(1));
    return pending;
  }

  const Bytes content_ = Content("t", 100);
  const std::shared_ptr<FailingStorage> storage_ =
      std::make_shared<FailingStorage>(MemoryStorage());
  const std::unique_ptr<Engine> engine_ = SmallEngine(storage_);
  const std::unique_ptr<Communicator> comm_ = SelfCommunicator();
  Declaration declaration_;
  SaverOptions options_;
  std::unique_ptr<Saver> saver_;
  std::vector<std::string> heard_;
};

TEST_F(UnobservedFailureTest, IsHeardOnceWhenThePendingSaveGoes) {
  auto pending = MakeEnded();
  EXPECT_EQ(pending->Poll(), SaveState::kFailed);
  EXPECT_THAT(heard_, IsEmpty());
  pending.reset();
  EXPECT_THAT(heard_, ElementsAre("save of step 7 to ckpt: Io"));
}

TEST_F(UnobservedFailureTest, IsHeardAlsoBehindTheSaver) {
  auto pending = MakeEnded();
  saver_.reset();
  pending.reset();
  EXPECT_THAT(heard_, ElementsAre("save of step 7 to ckpt: Io"));
}

TEST_F(UnobservedFailureTest, IsNoneIfItWasWaitedFor) {
  EXPECT_THAT(MakeEnded()->Wait().status(), HasCode(Code::kIo));
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(UnobservedFailureTest, IsNoneIfTheSaveSucceeded) {
  storage_->Heal();
  EXPECT_EQ(MakeEnded()->Poll(), SaveState::kCommitted);
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(UnobservedFailureTest, IsNoneIfTheCallerCancelledIt) {
  storage_->Heal();
  options_.on_progress = [](const PhaseEvent& event) {
    if (event.phase == Phase::kSyncBlobs) throw std::runtime_error("stop");
  };
  EXPECT_EQ(MakeEnded()->Poll(), SaveState::kFailed);
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(UnobservedFailureTest, IsALineOnStderrByDefault) {
  options_.on_unobserved_failure = nullptr;
  CaptureStderr();
  MakeEnded();
  const std::string text = GetCapturedStderr();
  EXPECT_THAT(text, ::testing::StartsWith(kLine));
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST_F(UnobservedFailureTest, IsALineOnStderrIfTheFunctionThrows) {
  options_.on_unobserved_failure = [](std::string_view, const Status&) {
    throw std::runtime_error("of the caller");
  };
  CaptureStderr();
  MakeEnded();
  EXPECT_THAT(GetCapturedStderr(), ::testing::StartsWith(kLine));
}

TEST_F(UnobservedFailureTest, IsNotHeardInAChildAfterFork) {
  auto pending = MakeEnded();
  EXPECT_TRUE(HoldsInChild([&] {
    pending.reset();
    return heard_.empty();
  }));
  pending.reset();
  EXPECT_EQ(heard_.size(), 1U);
}

}  // namespace
}  // namespace sealpoint::testing
