// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/expectations.h"

#include <fstream>
#include <sstream>

#include "lib/base/macros.h"

namespace sealpoint::testing {
namespace {

// The cells of "| a | b |", without the blanks around them.
std::vector<std::string> SplitRow(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t begin = 1; begin < line.size();) {
    const std::size_t end = line.find('|', begin);
    if (end == std::string::npos) break;
    const std::string cell = line.substr(begin, end - begin);
    const std::size_t first = cell.find_first_not_of(' ');
    const std::size_t last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    begin = end + 1;
  }
  return cells;
}

// "R-CHK-02 01.blob, R-BLB-08 01.blob".
std::set<std::pair<std::string, std::string>> ParseList(const std::string& cell) {
  std::set<std::pair<std::string, std::string>> list;
  std::istringstream in(cell);
  for (std::string pair; std::getline(in >> std::ws, pair, ',');) {
    const std::size_t blank = pair.find(' ');
    SEALPOINT_CHECK(blank != std::string::npos);
    SEALPOINT_CHECK(list.emplace(pair.substr(0, blank), pair.substr(blank + 1)).second);
  }
  return list;
}

}  // namespace

std::vector<ExpectedList> ReadExpectedLists(const std::string& path) {
  std::ifstream file(path);
  std::vector<ExpectedList> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| several-")) continue;
    const std::vector<std::string> cells = SplitRow(line);
    SEALPOINT_CHECK(cells.size() == 4);
    rows.push_back({cells[0], cells[1], ParseList(cells[2]), cells[3]});
  }
  SEALPOINT_CHECK(!rows.empty());
  return rows;
}

std::vector<Expectation> ReadExpectations(const std::string& path) {
  std::ifstream file(path);
  std::vector<Expectation> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| good-") && !line.starts_with("| bad-")) continue;
    const std::vector<std::string> cells = SplitRow(line);
    SEALPOINT_CHECK(cells.size() == 6);
    rows.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]});
  }
  SEALPOINT_CHECK(!rows.empty());
  return rows;
}

}  // namespace sealpoint::testing
