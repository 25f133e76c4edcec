// SPDX-License-Identifier: Apache-2.0
//
// Each row of spec/model/counterexamples.md has a test, and each such test a row.
#include "tests/crash/counterexample_rows.h"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

const std::string kSuiteEnd = "Counterexample";

std::string Trim(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<CounterexampleRow> ReadRows() {
  constexpr std::size_t kColumns = 6;
  const std::string excluded = " (excluded)";
  std::ifstream file(SEALPOINT_COUNTEREXAMPLES);
  std::vector<CounterexampleRow> rows;
  bool is_in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("|")) continue;
    if (!is_in_table) {
      is_in_table = line.starts_with("|---");
      continue;
    }
    std::istringstream in(line.substr(1));
    std::vector<std::string> cells;
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(Trim(cell));
    EXPECT_EQ(cells.size(), kColumns) << line;
    if (cells.size() != kColumns) continue;
    CounterexampleRow row{
        .model = cells[0], .mutant = cells[1], .comes_after = cells[3], .found = cells[4]};
    row.is_excluded = row.mutant.ends_with(excluded);
    if (row.is_excluded) row.mutant.resize(row.mutant.size() - excluded.size());
    rows.push_back(row);
  }
  return rows;
}

// "CommitCounterexample": "commit"; "" for other suites.
std::string ModelOf(const std::string& suite) {
  if (!suite.ends_with(kSuiteEnd)) return "";
  std::string model = suite.substr(0, suite.size() - kSuiteEnd.size());
  if (!model.empty()) {
    model[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(model[0])));
  }
  return model;
}

using Names = std::set<std::pair<std::string, std::string>>;  // model, mutant

// Counts the replayed rows and prints them at the end.
struct Tally {
  Names rows{};
  std::uint64_t shown = 0;
  std::uint64_t held = 0;
};

Tally& TheTally() {
  static Tally tally;
  return tally;
}

class Recorder final : public ::testing::Environment {
 public:
  void TearDown() override {
    const Tally& tally = TheTally();
    if (tally.rows.size() != CounterexampleRows().size()) return;  // not all tests were asked for
    RecordRun({.row = "crash-counterexamples",
               .title = "Counterexamples of the models, played over the crash storage",
               .command = "ctest --test-dir build/dev -R crash.counterexamples",
               .counts = {{"counterexamples", tally.rows.size()},
                          {"shown without the protective step", tally.shown},
                          {"withstood by the library", tally.held}}});
  }
};

[[maybe_unused]] const ::testing::Environment* const kRecorder =
    ::testing::AddGlobalTestEnvironment(new Recorder);

}  // namespace

const std::vector<CounterexampleRow>& CounterexampleRows() {
  static const std::vector<CounterexampleRow> rows = ReadRows();
  return rows;
}

const CounterexampleRow* RowOfRunningTest() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  for (const CounterexampleRow& row : CounterexampleRows()) {
    if (row.model == ModelOf(test.test_suite_name()) && row.mutant == test.name()) return &row;
  }
  return nullptr;
}

void NotePlayed(const CounterexampleRow& row, bool is_shown, bool is_held) {
  Tally& tally = TheTally();
  tally.rows.emplace(row.model, row.mutant);
  tally.shown += is_shown ? 1u : 0u;
  tally.held += is_held ? 1u : 0u;
}

namespace {

TEST(CounterexampleRows, EachHasItsTestAndEachTestItsRow) {
  Names rows;
  for (const CounterexampleRow& row : CounterexampleRows()) rows.emplace(row.model, row.mutant);
  EXPECT_FALSE(rows.empty());
  EXPECT_EQ(rows.size(), CounterexampleRows().size()) << "a row is there twice";
  Names tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    const std::string model = ModelOf(suite.name());
    for (int j = 0; !model.empty() && j < suite.total_test_count(); ++j) {
      tests.emplace(model, suite.GetTestInfo(j)->name());
    }
  }
  EXPECT_EQ(rows, tests);
}

}  // namespace
}  // namespace sealpoint::testing
