// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/python_package.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "tools/common/json.h"
#include "tools/common/output.h"

namespace sealpoint::tools {
namespace {

constexpr const char* kPython = "python3";
// A package in the current directory is not meant.
constexpr const char* kSearch =
    "import importlib.util, sys; sys.path = [one for one in sys.path if one]; "
    "sys.exit(importlib.util.find_spec('sealpoint') is None)";
constexpr const char* kRun =
    "import sys; sys.path = [one for one in sys.path if one]; "
    "from sealpoint.__main__ import main; sys.exit(main())";

// The arguments of an exec, which wants them mutable and changes none.
std::vector<char*> ArgumentsOf(const char* code, std::span<const char* const> words) {
  std::vector<char*> arguments;
  for (const char* one : {kPython, "-c", code}) arguments.push_back(const_cast<char*>(one));
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  arguments.push_back(nullptr);
  return arguments;
}

bool IsInstalled() {
  pid_t child = 0;
  const std::vector<char*> arguments = ArgumentsOf(kSearch, {});
  if (::posix_spawnp(&child, kPython, nullptr, nullptr, arguments.data(), environ) != 0) {
    return false;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

ExitStatus RunInPython(std::span<const char* const> words) {
  if (IsInstalled()) (void)::execvp(kPython, ArgumentsOf(kRun, words).data());
  const Status error(
      Code::kUnsupported,
      fmt::format("this command is in the Python package sealpoint, which {} cannot find: install "
                  "it, or put the directory of its Python first in PATH",
                  kPython));
  const bool wants_json = std::ranges::find(words, std::string_view("--json")) != words.end();
  const std::string program = fmt::format("ckpt {}", words.front());
  if (wants_json) {
    JsonWriter().Fail(error, ExitStatus::kUnsupported);
  } else {
    PrintError(program, error.ToString());
  }
  return FinishOutput(program, ExitStatus::kUnsupported);
}

}  // namespace sealpoint::tools
