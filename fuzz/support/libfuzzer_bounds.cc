// SPDX-License-Identifier: Apache-2.0
//
// Bounds that every run of a target has, whoever starts it: what one hostile file may take in
// memory (one allocation, and all) and in time; and no line for each function that is reached.
// Flags of the command line come later and win.
#include <vector>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static char malloc_limit[] = "-malloc_limit_mb=256";
  static char rss_limit[] = "-rss_limit_mb=2048";
  static char timeout[] = "-timeout=10";
  static char functions[] = "-print_funcs=0";
  static std::vector<char*> arguments(*argv, *argv + *argc);
  arguments.insert(arguments.begin() + 1, {malloc_limit, rss_limit, timeout, functions});
  arguments.push_back(nullptr);
  *argc = static_cast<int>(arguments.size()) - 1;
  *argv = arguments.data();
  return 0;
}
