// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_COMMAND_H_
#define SEALPOINT_TOOLS_CKPT_COMMAND_H_

#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>

#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// One subcommand of `ckpt`.
class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  // Description, arguments and footer. The first sentence of the description stands in the list of
  // all subcommands. Called once, before the arguments are parsed into the command.
  virtual void Describe(CLI::App& app) = 0;
  // `program` begins its messages: "ckpt ls", or the old name by which it was called.
  virtual ExitStatus Run(std::string_view program) = 0;
};

// Makes a subcommand known. A new one is a file with such an object at namespace scope, a line for
// that file in CMakeLists.txt, and a manual page.
class CommandEntry {
 public:
  using Maker = std::unique_ptr<Command> (*)();

  // The texts are literals. `old_name`: of a link to the program that means this command alone;
  // "ckpt-NAME" makes NAME another name of the command, too.
  CommandEntry(std::string_view name, Maker make, std::string_view old_name = {}) noexcept
      : name_(name), old_name_(old_name), make_(make), next_(first_) {
    first_ = this;
  }
  CommandEntry(const CommandEntry&) = delete;
  CommandEntry& operator=(const CommandEntry&) = delete;

  std::string_view name() const { return name_; }
  std::string_view old_name() const { return old_name_; }
  std::unique_ptr<Command> Make() const { return make_(); }

  // All entries, in no order.
  static const CommandEntry* first() { return first_; }
  const CommandEntry* next() const { return next_; }

 private:
  static inline const CommandEntry* first_ = nullptr;

  const std::string_view name_;
  const std::string_view old_name_;
  const Maker make_;
  const CommandEntry* const next_;
};

template <typename T>
std::unique_ptr<Command> MakeCommand() {
  return std::make_unique<T>();
}

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_COMMAND_H_
