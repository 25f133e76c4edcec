// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/counterexample_play.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sealpoint/commit.h"
#include "tests/crash/counterexample_rows.h"
#include "tests/support/crash/check.h"
#include "tests/support/crash/runs.h"

namespace sealpoint::testing {
namespace {

// What must never be found.
enum class Bad : std::uint8_t {
  kNothing,
  kMarkerWithoutFiles,
  kReadersAreWrong,
  kReportedAndGone,
  kFailedAndThere,
  kOldIsGone,
  kNoCheckpoint,
};

struct Finding {
  Bad bad = Bad::kNothing;
  std::string directory{};  // in which a reader fails
  std::string detail{};
};

bool Contains(const std::vector<std::uint64_t>& steps, std::uint64_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

// What the readers find in an image, against what the reported outcomes promise.
Finding Look(const Played& played, const CrashImage& image, const CrashCut& cut,
             CrashChecker& checker) {
  std::vector<std::uint64_t> whole;
  for (const auto& [path, folder] : image.folders) {
    const bool is_below = path.starts_with(std::string(kCrashSeries) + "/");
    if (!is_below || std::ranges::find(played.damaged, path) != played.damaged.end()) continue;
    const CrashFinding found = checker.Look(image, path);
    if (found.verdict == CrashVerdict::kWrong) return {Bad::kReadersAreWrong, path, found.detail};
    if (found.verdict == CrashVerdict::kDamaged) {
      return {Bad::kMarkerWithoutFiles, path, found.detail};
    }
    if (found.verdict == CrashVerdict::kWhole) whole.push_back(found.step);
  }
  for (const CrashOp& op : played.history.ops) {
    const auto actor = static_cast<std::size_t>(op.actor);
    const std::uint64_t step = played.steps[actor];
    const bool is_told = op.kind == CrashOpKind::kReported && op.clock[actor] <= cut.done[actor];
    if (!is_told || step == 0) continue;
    const bool is_there = Contains(whole, step);
    if (op.name == kReportedSuccess && !is_there) return {Bad::kReportedAndGone, "", op.Describe()};
    if (op.name == kReportedFailure && is_there) return {Bad::kFailedAndThere, "", op.Describe()};
  }
  if (whole.empty()) return {Bad::kNoCheckpoint, "", "no checkpoint is left"};
  if (played.keeps_old && !Contains(whole, 1)) return {Bad::kOldIsGone, "", "step 1 is gone"};
  return {};
}

// --- The words of the rows.

struct Loss {
  std::string suffix{};  // of the file's name
  bool is_name = false;  // the name is lost; else the content
};

struct Found {
  Bad bad = Bad::kNothing;
  std::optional<Loss> loss{};
};

const std::map<std::string, Found> kFound{
    {"reader sees the marker without its files", {Bad::kMarkerWithoutFiles}},
    {"reader sees a marker without its files", {Bad::kMarkerWithoutFiles}},
    {"reader sees marker without its files", {Bad::kMarkerWithoutFiles}},
    {"crash keeps the marker and loses its files", {Bad::kMarkerWithoutFiles}},
    {"crash keeps a marker and loses its files", {Bad::kMarkerWithoutFiles}},
    {"crash keeps marker loses name of blob", {Bad::kMarkerWithoutFiles, Loss{".blob", true}}},
    {"crash keeps marker loses content of blob", {Bad::kMarkerWithoutFiles, Loss{".blob", false}}},
    {"crash keeps marker loses its content", {Bad::kMarkerWithoutFiles, Loss{"COMMIT", false}}},
    {"crash keeps marker loses index", {Bad::kMarkerWithoutFiles, Loss{".index", true}}},
    {"crash keeps marker loses content of index",
     {Bad::kMarkerWithoutFiles, Loss{".index", false}}},
    {"crash loses marker", {Bad::kReportedAndGone}},
    {"crash loses the marker of a commit that was reported", {Bad::kReportedAndGone}},
    {"attempt 0 was reported committed and its marker is not there", {Bad::kReportedAndGone}},
    {"crash may leave no checkpoint at all", {Bad::kNoCheckpoint}},
};
const std::string kDeadlock = "nobody goes on: ranks wait for ever";

// The deleter runs beside the committer, the cleaner beside a rank that both writes and commits.
const std::map<std::string, int> kActors{
    {"rank 0", 0},    {"attempt 0", 0}, {"attempt 1", 1},
    {"deleter 0", 1}, {"cleaner", 1},   {"disk", 2},
};

const std::map<std::string, std::string> kOperations{
    {"published", "publish COMMIT"},
    {"the publication takes effect late", "publish COMMIT"},
    {"reported committed", "report success"},
    {"index removed", "remove *.index"},
    {"blob removed", "remove *.blob"},
    {"files removed", "remove *."},
    {"files of one are lost", "remove *.blob"},
    {"own files removed", "remove *."},
    {"the listed files removed", "remove *."},
    {"marker removed", "remove COMMIT"},
};

// All that was done up to the row's last step.
CrashCut CutOfRow(const CounterexampleRow& row, const CrashHistory& history) {
  const std::size_t who_end = row.comes_after.find(": ");
  const std::size_t what = row.comes_after.rfind(": ") + 2;
  const std::string wanted = "rank " +
                             std::to_string(kActors.at(row.comes_after.substr(0, who_end))) + ": " +
                             kOperations.at(row.comes_after.substr(what));
  std::size_t last = history.ops.size();
  for (std::size_t i = 0; i < history.ops.size(); ++i) {
    if (history.ops[i].Describe().starts_with(wanted)) last = i;
  }
  EXPECT_LT(last, history.ops.size()) << "nobody came to \"" << wanted << "\"";
  std::vector<std::uint32_t> done(static_cast<std::size_t>(history.actor_count), 0);
  for (std::size_t i = 0; i <= last && i < history.ops.size(); ++i) {
    ++done[static_cast<std::size_t>(history.ops[i].actor)];
  }
  return CutOf(history, done);
}

// Compares with what is there in the end.
bool IsLost(const Loss& loss, const std::string& directory, const Played& played,
            const CrashImage& image) {
  for (const auto& [name, content] : played.end.Find(directory)->files) {
    if (!name.ends_with(loss.suffix)) continue;
    const auto& files = image.Find(directory)->files;
    const auto found = files.find(name);
    if (loss.is_name ? found == files.end()
                     : found != files.end() && found->second->hash != content->hash) {
      return true;
    }
  }
  return false;
}

// --- The required ends of the two runs.

void ExpectShown(const CounterexampleRow& row, const Played& played) {
  const auto expected = kFound.find(row.found);
  ASSERT_NE(expected, kFound.end()) << "no test knows \"" << row.found << "\"";
  const CrashCut cut = CutOfRow(row, played.history);
  CrashChecker checker;
  bool is_shown = false;
  std::string other;
  const auto look = [&](const CrashImage& image) {
    const Finding finding = Look(played, image, cut, checker);
    const auto& [bad, loss] = expected->second;
    is_shown |= finding.bad == bad && (!loss || IsLost(*loss, finding.directory, played, image));
    if (finding.bad != Bad::kNothing) other = finding.detail;
    return !is_shown;
  };
  if (row.found.starts_with("crash")) {
    ForEachCrashAt(played.history, cut, played.options,
                   [&](const CrashImage& image, const CrashCut&) { return look(image); });
  } else {
    look(MakeImage(played.history, cut, played.options, {}));  // nothing is lost
  }
  EXPECT_TRUE(is_shown) << "without the step, not found: " << row.found
                        << (other.empty() ? "" : "; but: " + other);
}

Outcome OutcomeOf(const Status& result) {
  if (result.ok()) return Outcome::kSuccess;
  return OutcomeIsUnknown(result) ? Outcome::kUnknown : Outcome::kFailure;
}

void ExpectHeld(const Played& played, const std::vector<Outcome>& reported) {
  ASSERT_EQ(played.results.size(), reported.size());
  for (std::size_t actor = 0; actor < reported.size(); ++actor) {
    EXPECT_EQ(OutcomeOf(played.results[actor]), reported[actor])
        << played.results[actor].ToString();
  }
  CrashChecker checker;
  const auto look = [&](const CrashImage& image, const CrashCut& cut) {
    const Finding finding = Look(played, image, cut, checker);
    if (finding.bad == Bad::kNothing) return true;
    ADD_FAILURE() << "the library as it is: " << finding.directory << " " << finding.detail
                  << "\nafter " << (cut.last == nullptr ? "nothing" : cut.last->Describe()) << "\n"
                  << image.Describe();
    return false;
  };
  ForEachCrash(played.history, played.options, look);
  look(played.end, AllCuts(played.history, true).back());
}

}  // namespace

void PlayCounterexample(const Ways& ways) {
  const CounterexampleRow* const row = RowOfRunningTest();
  ASSERT_NE(row, nullptr) << "no row of counterexamples.md has this name";
  EXPECT_EQ(ways.without == nullptr, row->found == kDeadlock);
  EXPECT_EQ(ways.real == nullptr, row->is_excluded);
  if (ways.without) ExpectShown(*row, ways.without());
  if (ways.real) ExpectHeld(ways.real(), ways.reported);
  NotePlayed(*row, ways.without != nullptr, ways.real != nullptr);
}

}  // namespace sealpoint::testing
