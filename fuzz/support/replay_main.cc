// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target over its regressions and seeds, or over the files and folders that are named,
// without libFuzzer: every compiler replays what was once found.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/support/target.h"

namespace {

namespace fs = std::filesystem;

void Replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);  // before an abort
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> places(argv + 1, argv + argc);
  if (places.empty()) places = {SEALPOINT_FUZZ_REGRESSIONS, SEALPOINT_FUZZ_SEEDS};
  int count = 0;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place)) {
      Replay(place);
      ++count;
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      if (!entry.is_regular_file()) continue;
      Replay(entry.path());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count == 0 ? 1 : 0;
}
