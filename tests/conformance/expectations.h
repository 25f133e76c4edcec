// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CONFORMANCE_EXPECTATIONS_H_
#define SEALPOINT_TESTS_CONFORMANCE_EXPECTATIONS_H_

#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/status.h"

namespace sealpoint::testing {

// A row of corpus.md.
struct Expectation {
  std::string name;
  std::string seen_by;  // "open", "read", "verify"; "-" of a good entry
  std::string code;
  std::string rule;  // "-" of a good entry that shows no rule
  std::string file;  // "COMMIT", "index", "01.blob", …; "-" for the directory
  std::string sentence;

  bool is_good() const { return code == "Ok"; }
  friend std::ostream& operator<<(std::ostream& out, const Expectation& row) {
    return out << row.name;
  }
};

// A row of corpus.md about an entry with several damages.
struct ExpectedList {
  std::string name;
  std::string verdict;
  std::set<std::pair<std::string, std::string>> violations;  // rule and file
  std::string sentence;

  friend std::ostream& operator<<(std::ostream& out, const ExpectedList& row) {
    return out << row.name;
  }
};

// The rows of each table in their order. They abort if there is no table.
std::vector<Expectation> ReadExpectations(const std::string& path);
std::vector<ExpectedList> ReadExpectedLists(const std::string& path);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_EXPECTATIONS_H_
