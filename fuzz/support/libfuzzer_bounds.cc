// SPDX-License-Identifier: Apache-2.0
//
// Bounds for every run of a target, however it is started: the memory (of one allocation and in
// all) and the time that one hostile file may take; and no line for each function that is reached.
// Flags of the command line come later and take precedence.
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
