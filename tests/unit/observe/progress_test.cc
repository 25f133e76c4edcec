// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/phases.h"

namespace sealpoint {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = PhaseEvent::Kind;
using std::chrono::milliseconds;

constexpr std::uint64_t kMillion = 1000000;

PhaseEvent Event(Kind kind, Phase phase, std::uint64_t done = 0, std::uint64_t total = 0,
                 std::uint64_t step = kNoStep) {
  return {.phase = phase, .kind = kind, .bytes_done = done, .bytes_total = total, .step = step};
}

class ProgressTest : public ::testing::Test {
 protected:
  // Reports so many bytes every 100 ms.
  void Move(std::uint64_t bytes, int times) {
    for (int i = 0; i < times; ++i) {
      done_ += bytes;
      now_ += milliseconds(100);
      progress_.OnPhase(Event(Kind::kProgress, Phase::kWriteBlobs, done_, total_), now_);
    }
  }
  void Begin(std::uint64_t total) {
    total_ = total;
    progress_.OnPhase(Event(Kind::kBegin, Phase::kWriteBlobs, 0, total), now_);
  }

  Progress progress_;
  Progress::Clock::time_point now_ = Progress::Clock::now();
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

TEST_F(ProgressTest, TellsPhaseBytesRateAndTimeLeft) {
  Begin(100 * kMillion);
  Move(kMillion, 20);
  const ProgressFigures figures = progress_.figures();
  EXPECT_EQ(figures.what, "write blobs");
  EXPECT_EQ(figures.bytes_done, 20 * kMillion);
  EXPECT_EQ(figures.bytes_total, 100 * kMillion);
  EXPECT_NEAR(figures.bytes_per_second, 10e6, 1e3);
  ASSERT_TRUE(figures.seconds_left);
  EXPECT_NEAR(*figures.seconds_left, 8, 0.01);
}

TEST_F(ProgressTest, KnowsNoRateBeforeItHasSeenSome) {
  Begin(100 * kMillion);
  EXPECT_EQ(progress_.figures().bytes_per_second, 0);
  EXPECT_FALSE(progress_.figures().seconds_left);
  progress_.OnPhase(Event(Kind::kProgress, Phase::kWriteBlobs, 1, 100 * kMillion),
                    now_ + milliseconds(1));
  EXPECT_EQ(progress_.figures().bytes_done, 1u);
  EXPECT_FALSE(progress_.figures().seconds_left) << "a millisecond says nothing";
}

// Opening files is slow and filling a cache is fast; neither predicts how long the rest will take.
TEST_F(ProgressTest, TellsNoTimeLeftInTheFirstSecond) {
  Begin(100 * kMillion);
  Move(kMillion, 9);
  EXPECT_NEAR(progress_.figures().bytes_per_second, 10e6, 1e3);
  EXPECT_FALSE(progress_.figures().seconds_left);
  Move(kMillion, 2);
  EXPECT_TRUE(progress_.figures().seconds_left);
}

// A burst into a cache, and a pause, move the rate but do not become it.
TEST_F(ProgressTest, SmoothsTheRate) {
  Begin(1000 * kMillion);
  Move(kMillion, 50);
  Move(11 * kMillion, 1);
  EXPECT_GT(progress_.figures().bytes_per_second, 11e6);
  EXPECT_LT(progress_.figures().bytes_per_second, 16e6);
  Move(0, 10);
  EXPECT_LT(progress_.figures().bytes_per_second, 11e6);
  EXPECT_GT(progress_.figures().bytes_per_second, 5e6);
}

TEST_F(ProgressTest, ForgetsAnOldRate) {
  Begin(10000 * kMillion);
  Move(10 * kMillion, 50);
  Move(kMillion, 200);
  EXPECT_NEAR(progress_.figures().bytes_per_second, 10e6, 1e6);
}

TEST_F(ProgressTest, ANewPhaseBeginsAtNothing) {
  Begin(10 * kMillion);
  Move(kMillion, 10);
  progress_.OnPhase(Event(Kind::kEnd, Phase::kWriteBlobs, done_, total_), now_);
  EXPECT_EQ(progress_.figures().what, "");
  progress_.OnPhase(Event(Kind::kBegin, Phase::kAgree), now_);
  EXPECT_EQ(progress_.figures().what, "agree");
  EXPECT_EQ(progress_.figures().bytes_done, 0u);
  EXPECT_EQ(progress_.figures().bytes_per_second, 0);
}

TEST_F(ProgressTest, FollowsTheYoungerOfTwoSavesAndThenTheOtherOne) {
  progress_.OnPhase(Event(Kind::kBegin, Phase::kWriteBlobs, 0, 50, 1), now_);
  progress_.OnPhase(Event(Kind::kBegin, Phase::kSnapshot, 0, 40, 2), now_);
  progress_.OnPhase(Event(Kind::kProgress, Phase::kWriteBlobs, 10, 50, 1), now_);
  EXPECT_EQ(progress_.figures().what, "snapshot");
  EXPECT_EQ(progress_.figures().bytes_done, 0u);
  progress_.OnPhase(Event(Kind::kEnd, Phase::kSnapshot, 40, 40, 2), now_);
  progress_.OnPhase(Event(Kind::kProgress, Phase::kWriteBlobs, 20, 50, 1), now_);
  EXPECT_EQ(progress_.figures().what, "write blobs");
  EXPECT_EQ(progress_.figures().step, 1u);
  EXPECT_EQ(progress_.figures().bytes_done, 20u);
  EXPECT_EQ(progress_.figures().bytes_total, 50u);
}

TEST_F(ProgressTest, TakesOtherStepsAndPhasesForOthers) {
  progress_.OnPhase(Event(Kind::kBegin, Phase::kWriteBlobs, 0, 50, 1), now_);
  progress_.OnPhase(Event(Kind::kProgress, Phase::kWriteBlobs, 10, 50, 2), now_);
  progress_.OnPhase(Event(Kind::kProgress, Phase::kSnapshot, 20, 50, 1), now_);
  progress_.OnPhase(Event(Kind::kEnd, Phase::kWriteBlobs, 10, 50, 2), now_);
  progress_.OnPhase(Event(Kind::kEnd, Phase::kSnapshot, 20, 50, 1), now_);
  EXPECT_EQ(progress_.figures().what, "write blobs");
  EXPECT_EQ(progress_.figures().bytes_done, 0u);
}

TEST_F(ProgressTest, CountsWithoutPhases) {
  progress_.Set("verify", 0, 200, now_);
  progress_.Set("verify", 50, 200, now_ + milliseconds(500));
  EXPECT_EQ(progress_.figures().what, "verify");
  EXPECT_NEAR(progress_.figures().bytes_per_second, 100, 1);
  progress_.Reset();
  EXPECT_EQ(progress_.figures().what, "");
}

TEST_F(ProgressTest, MayBeToldAndAskedByAnyThreads) {
  std::vector<std::thread> threads;
  for (std::uint64_t step = 0; step < 2; ++step) {
    threads.emplace_back([this, step] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        progress_.OnPhase(Event(Kind::kBegin, Phase::kRead, 0, 9, step));
        progress_.OnPhase(Event(Kind::kProgress, Phase::kRead, i, 9, step));
        static_cast<void>(progress_.figures());
        progress_.OnPhase(Event(Kind::kEnd, Phase::kRead, 9, 9, step));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(progress_.figures().what, "");
}

ProgressFigures Halfway() {
  return {.what = "write blobs",
          .step = 30,
          .bytes_done = 512 * kMillion,
          .bytes_total = 1024 * kMillion,
          .bytes_per_second = 4.1e6,
          .seconds_left = 124.88};
}

TEST(RenderProgressTest, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(RenderProgress(Halfway(), 100, BarStyle::kAscii),
            "step 30: write blobs  [###########............]   50 %  2:05 left  4.1 MB/s  "
            "512.0 MB of 1.0 GB");
}

TEST(RenderProgressTest, DrawsEighthsOfAColumn) {
  ProgressFigures figures = Halfway();
  figures.step = kNoStep;
  figures.bytes_done = 30 * kMillion;  // 3.05 eighths of a bar of 13 columns
  EXPECT_EQ(RenderProgress(figures, 54, BarStyle::kUtf8),
            "write blobs  ▍░░░░░░░░░░░░    2 %  2:05 left  4.1 MB/s");
  figures.bytes_done = figures.bytes_total;
  EXPECT_THAT(RenderProgress(figures, 54, BarStyle::kUtf8), HasSubstr("  █████████████  100 %"));
}

TEST(RenderProgressTest, TheBarIsAsLongForAllFigures) {
  ProgressFigures figures = Halfway();
  for (const std::uint64_t done : {0u, 1u, 999u, 1000u, 123456789u}) {
    figures.bytes_done = done;
    const std::string line = RenderProgress(figures, 100, BarStyle::kAscii);
    EXPECT_EQ(line.find(']') - line.find('['), 24u) << line;
  }
}

TEST(RenderProgressTest, IsNeverWiderThanAskedFor) {
  for (int width = 0; width <= 120; ++width) {
    const std::string line = RenderProgress(Halfway(), width, BarStyle::kAscii);
    EXPECT_LE(line.size(), static_cast<std::size_t>(width));
    EXPECT_THAT(line, StartsWith(std::string("step 30: write blobs").substr(0, line.size())));
  }
}

TEST(RenderProgressTest, LeavesTheLeastImportantOutFirst) {
  EXPECT_EQ(RenderProgress(Halfway(), 28, BarStyle::kAscii), "step 30: write blobs   50 %");
  EXPECT_EQ(RenderProgress(Halfway(), 40, BarStyle::kAscii),
            "step 30: write blobs   50 %  2:05 left");
}

TEST(RenderProgressTest, SaysOnlyWhatItKnows) {
  EXPECT_EQ(RenderProgress({}, 80, BarStyle::kAscii), "");
  EXPECT_EQ(RenderProgress({.what = "agree"}, 80, BarStyle::kAscii), "agree");
  EXPECT_EQ(RenderProgress({.what = "read", .bytes_done = 1500}, 80, BarStyle::kAscii),
            "read  1.5 kB");
}

TEST(RenderProgressTest, TimeLeftIsRoundedUp) {
  ProgressFigures figures = Halfway();
  figures.seconds_left = 0.2;
  EXPECT_THAT(RenderProgress(figures, 100, BarStyle::kAscii), HasSubstr("  0:01 left"));
  figures.seconds_left = 7199.5;
  EXPECT_THAT(RenderProgress(figures, 100, BarStyle::kAscii), HasSubstr("  2:00:00 left"));
  figures.seconds_left = 1e18;
  EXPECT_THAT(RenderProgress(figures, 100, BarStyle::kAscii), HasSubstr("  99:59:59 left"));
}

// Both ends of a terminal, 60 columns wide.
class ProgressLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1);
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(master_ >= 0 && grantpt(master_) == 0 && unlockpt(master_) == 0);
    std::array<char, 64> name{};
    ASSERT_EQ(ptsname_r(master_, name.data(), name.size()), 0);
    terminal_ = open(name.data(), O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal_, 0);
    winsize size = {};
    size.ws_col = 60;
    ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  void TearDown() override {
    close(terminal_);
    close(master_);
    unsetenv("LC_ALL");
  }
  // Returns what was drawn since the last call.
  std::string Drawn() const {
    fcntl(master_, F_SETFL, O_NONBLOCK);
    std::array<char, 4096> text{};
    const ssize_t size = read(master_, text.data(), text.size());
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
  }
  // Longer than the first moments.
  static void Wait() { std::this_thread::sleep_for(milliseconds(320)); }

  int master_ = -1;
  int terminal_ = -1;
};

TEST_F(ProgressLineTest, DrawsWhatTakesLongAndTakesItOff) {
  ProgressLine line(terminal_);
  line.Set("verify", 0, 200);
  EXPECT_EQ(Drawn(), "") << "in the first moments";
  Wait();
  line.Set("verify", 100, 200);
  EXPECT_THAT(Drawn(),
              MatchesRegex("\rverify  \\[[#.]*\\]   50 %  .* B/s  100 B of 200 B\x1b\\[K"));
  line.Clear();
  EXPECT_EQ(Drawn(), "\r\x1b[K");
  line.Clear();
  EXPECT_EQ(Drawn(), "");
}

TEST_F(ProgressLineTest, GoesWithTheLastPhaseOfASave) {
  ProgressLine line(terminal_);
  line.OnPhase(Event(Kind::kBegin, Phase::kWriteBlobs, 0, 9));
  Wait();
  line.OnPhase(Event(Kind::kProgress, Phase::kWriteBlobs, 9, 9));
  line.OnPhase(Event(Kind::kEnd, Phase::kWriteBlobs, 9, 9));
  EXPECT_THAT(Drawn(), HasSubstr("write blobs"));
  line.OnPhase(Event(Kind::kBegin, Phase::kVerdict));
  line.OnPhase(Event(Kind::kEnd, Phase::kVerdict));
  EXPECT_EQ(Drawn(), "\r\x1b[K");
}

TEST_F(ProgressLineTest, IsOffWhileItIsHeld) {
  ProgressLine line(terminal_);
  line.Set("verify", 0, 200);
  Wait();
  line.Set("verify", 1, 200);
  EXPECT_THAT(Drawn(), Not(IsEmpty()));
  std::thread other;
  {
    const auto hold = line.Hold();
    EXPECT_EQ(Drawn(), "\r\x1b[K");
    other = std::thread([&line] {
      Wait();
      line.Set("verify", 2, 200);
    });
    std::this_thread::sleep_for(milliseconds(400));
    EXPECT_EQ(Drawn(), "");
  }
  other.join();
  EXPECT_THAT(Drawn(), HasSubstr("verify"));
}

TEST_F(ProgressLineTest, DrawsNothingIntoAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  {
    ProgressLine line(ends[1]);
    EXPECT_FALSE(line.is_terminal());
    line.Set("verify", 0, 200);
    Wait();
    line.Set("verify", 100, 200);
  }
  close(ends[1]);
  char letter = 0;
  EXPECT_EQ(read(ends[0], &letter, 1), 0);
  close(ends[0]);
}

TEST_F(ProgressLineTest, DrawsNothingOnADumbTerminal) {
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(ProgressLine(terminal_).is_terminal());
  unsetenv("TERM");
  EXPECT_FALSE(ProgressLine(terminal_).is_terminal());
}

}  // namespace
}  // namespace sealpoint
