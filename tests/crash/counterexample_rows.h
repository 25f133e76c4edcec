// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CRASH_COUNTEREXAMPLE_ROWS_H_
#define SEALPOINT_TESTS_CRASH_COUNTEREXAMPLE_ROWS_H_

#include <string>
#include <vector>

namespace sealpoint::testing {

// A row of spec/model/counterexamples.md.
struct CounterexampleRow {
  std::string model{};
  std::string mutant{};
  bool is_excluded = false;
  std::string comes_after{};
  std::string found{};
};

const std::vector<CounterexampleRow>& CounterexampleRows();

// The row of the running test, found by its suite (CommitCounterexample: the model commit) and
// name; null if there is none.
const CounterexampleRow* RowOfRunningTest();

// For the count of this run.
void NotePlayed(const CounterexampleRow& row, bool is_shown, bool is_held);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CRASH_COUNTEREXAMPLE_ROWS_H_
