// SPDX-License-Identifier: Apache-2.0
//
// The cases that tests/examples/trace_test.py does not cover with the saves of a real training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/phases.h"
#include "tests/support/process/in_child.h"

namespace sealpoint {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Kind = PhaseEvent::Kind;

class TraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "trace-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/trace.json";
    trace_ = Trace::Create(path_, {.rank = 3, .host = "a \"b\"\n"}).value();
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(directory_.c_str());
  }
  void Run(Phase phase, std::uint64_t step = kNoStep, std::uint64_t bytes = 0) {
    trace_->OnPhase({.phase = phase, .kind = Kind::kBegin, .step = step});
    trace_->OnPhase({.phase = phase, .kind = Kind::kEnd, .bytes_done = bytes, .step = step});
  }
  std::string Text() const {
    std::string text;
    std::FILE* const file = std::fopen(path_.c_str(), "rb");
    for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) {
      text.push_back(static_cast<char>(letter));
    }
    std::fclose(file);
    return text;
  }
  // Names of complete events in their order, each with its thread.
  std::vector<std::string> Names() const {
    const std::string text = Text();
    std::vector<std::string> names;
    constexpr std::string_view kName = "{\"name\": \"";
    for (std::size_t at = text.find(kName); at != std::string::npos;
         at = text.find(kName, at + 1)) {
      const std::size_t begin = at + kName.size();
      const std::size_t end = text.find('"', begin);
      if (text.compare(end, 12, "\", \"ph\": \"X\"") != 0) continue;
      const std::size_t thread = text.find("\"tid\": ", end) + 7;
      names.push_back(text.substr(begin, end - begin) + " " + text[thread]);
    }
    return names;
  }

  std::string directory_;
  std::string path_;
  std::unique_ptr<Trace> trace_;
};

TEST_F(TraceTest, BeginsWithTheNameOfTheProcess) {
  EXPECT_THAT(Text(),
              HasSubstr("[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 3, \"tid\": 0, "
                        "\"args\": {\"name\": \"rank 3 on a \\\"b\\\" \"}}"));
}

TEST_F(TraceTest, AnEventIsInTheFileWhenItIsOver) {
  Run(Phase::kPreflight, 7);
  const std::string before = Text();
  EXPECT_THAT(
      before,
      HasSubstr("{\"name\": \"preflight\", \"ph\": \"X\", \"pid\": 3, \"tid\": 0, \"ts\": "));
  EXPECT_THAT(before, EndsWith("\"args\": {\"step\": 7}}")) << "no comma that nothing follows";
  EXPECT_TRUE(trace_->Close().ok());
  EXPECT_THAT(Text(), EndsWith("}\n]\n"));
}

TEST_F(TraceTest, TellsBytesAndRate) {
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kBegin});
  usleep(2000);
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kEnd, .bytes_done = 12345});
  EXPECT_THAT(Text(), HasSubstr("\"args\": {\"bytes\": 12345, \"bytes_per_second\": "));
}

TEST_F(TraceTest, OneSaveBehindAnother) {
  for (const std::uint64_t step : {1u, 2u}) {
    for (const Phase phase : {Phase::kPreflight, Phase::kPlan, Phase::kVerdict}) Run(phase, step);
  }
  EXPECT_THAT(Names(), ::testing::ElementsAre("preflight 0", "plan 0", "verdict 0", "save 0",
                                              "preflight 0", "plan 0", "verdict 0", "save 0"));
}

// It has no verdict; the next one of the same step, or the end, ends it.
TEST_F(TraceTest, ASaveThatFailedEndsWithItsLastPhase) {
  Run(Phase::kPreflight, 1);
  Run(Phase::kPreflight, 1);
  Run(Phase::kPlan, 1);
  EXPECT_TRUE(trace_->Close().ok());
  EXPECT_THAT(Names(),
              ::testing::ElementsAre("preflight 0", "save 0", "preflight 0", "plan 0", "save 0"));
}

TEST_F(TraceTest, ALoadBehindASaveThatFailed) {
  Run(Phase::kPreflight);
  Run(Phase::kOpen);
  Run(Phase::kRead);
  EXPECT_THAT(Names(),
              ::testing::ElementsAre("preflight 0", "save 0", "open 0", "read 0", "load 0"));
}

TEST_F(TraceTest, OtherThreadsAreTheBackground) {
  Run(Phase::kSnapshot, 1);
  std::thread([this] { Run(Phase::kVerdict, 1); }).join();
  EXPECT_THAT(Names(), ::testing::ElementsAre("snapshot 0", "save 0", "verdict 1", "save 1"));
}

TEST_F(TraceTest, APhaseThatIsNotOverIsNotTold) {
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kBegin});
  EXPECT_TRUE(trace_->Close().ok());
  EXPECT_THAT(Text(), Not(HasSubstr("\"read\"")));
  EXPECT_THAT(Text(), EndsWith("\n]\n"));
}

TEST_F(TraceTest, ProgressIsNoEnd) {
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kBegin});
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kProgress, .bytes_done = 1});
  EXPECT_THAT(Names(), ::testing::IsEmpty());
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kEnd, .bytes_done = 1});
  trace_->OnPhase({.phase = Phase::kRead, .kind = Kind::kEnd, .bytes_done = 1});
  EXPECT_THAT(Names(), ::testing::ElementsAre("read 0", "load 0")) << "an end has a begin";
}

TEST_F(TraceTest, IgnoresWhatComesAfterTheEnd) {
  EXPECT_TRUE(trace_->Close().ok());
  const std::string before = Text();
  Run(Phase::kRead);
  EXPECT_TRUE(trace_->Close().ok());
  EXPECT_EQ(Text(), before);
}

TEST_F(TraceTest, AChildAfterForkWritesNothing) {
  const std::string before = Text();
  EXPECT_TRUE(testing::HoldsInChild([this] {
    Run(Phase::kRead);
    trace_.reset();
    return true;
  }));
  EXPECT_EQ(Text(), before);
}

TEST(TraceErrorTest, AFullDiskEndsTheTraceAndNothingElse) {
  const auto trace = Trace::Create("/dev/full", {});
  if (!trace.ok()) GTEST_SKIP() << "there is no /dev/full";
  (*trace)->OnPhase({.phase = Phase::kRead, .kind = Kind::kBegin});
  (*trace)->OnPhase({.phase = Phase::kRead, .kind = Kind::kEnd});
  EXPECT_EQ((*trace)->Close().code(), Code::kNoSpace);
}

TEST(TraceErrorTest, AMissingDirectoryIsNamed) {
  const auto trace = Trace::Create("/nowhere/trace.json", {});
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.error().ToString(), HasSubstr("/nowhere/trace.json"));
}

}  // namespace
}  // namespace sealpoint
