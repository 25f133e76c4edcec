// SPDX-License-Identifier: Apache-2.0
//
// ckpt: looks after checkpoints. Each subcommand is a Command.
#include "tools/ckpt/program.h"
#include "tools/ckpt/python_package.h"
#include "tools/ckpt/storages.h"

int main(int argc, char** argv) {
  using namespace sealpoint::tools;  // NOLINT: a program
  RegisterStorages();
  const std::span<const char* const> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (const auto status = RunProgram(words)) return static_cast<int>(*status);
  return static_cast<int>(RunInPython(words));
}
