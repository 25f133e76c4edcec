// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_RESULTS_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_RESULTS_H_

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace sealpoint::testing {

// The counts of a run: a row of the table in docs/evidence/testing-counts.md, which
// scripts/testing_table.py makes from such files. Texts are plain ASCII without quotation marks and
// backslashes.
struct CountedRun {
  std::string row{};      // names the file and orders the table: "crash-one-save"
  std::string title{};    // "Crash states of one save"
  std::string command{};  // repeats it from the project's root
  std::vector<std::pair<std::string, std::uint64_t>> counts{};  // {"crash points", 1234}
  bool exact = true;  // true if every run on every machine counts the same
};

// Prints the counts and, if the environment variable SEALPOINT_RESULTS names a folder, writes them
// into <folder>/<row>.json. Call it after everything that could fail.
inline void RecordRun(const CountedRun& run) {
  std::string json = "{\"row\": \"" + run.row + "\", \"title\": \"" + run.title +
                     "\", \"command\": \"" + run.command +
                     "\", \"exact\": " + (run.exact ? "true" : "false") + ", \"counts\": {";
  std::string line = run.title + ":";
  for (std::size_t i = 0; i < run.counts.size(); ++i) {
    const auto& [what, count] = run.counts[i];
    json += (i == 0 ? "\"" : ", \"") + what + "\": " + std::to_string(count);
    line += (i == 0 ? " " : ", ") + std::to_string(count) + " " + what;
  }
  std::cout << "[ counted  ] " << line << std::endl;
  const char* const folder = std::getenv("SEALPOINT_RESULTS");
  if (folder == nullptr || *folder == '\0') return;
  std::ofstream(std::string(folder) + "/" + run.row + ".json") << json << "}}\n";
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_RESULTS_H_
