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
  // `program` begins its messages: "ckpt ls".
  virtual ExitStatus Run(std::string_view program) = 0;
};

// Makes a subcommand known. A new one is a file with such an object at namespace scope, a line for
// that file in CMakeLists.txt, and a manual page.
class CommandEntry {
 public:
  using Maker = std::unique_ptr<Command> (*)();

  // `name` is a literal.
  CommandEntry(std::string_view name, Maker make) noexcept
      : CommandEntry(name, make, std::string_view()) {}
  // A command of the Python package, which parses its arguments. The texts are literals.
  CommandEntry(std::string_view name, std::string_view description) noexcept
      : CommandEntry(name, nullptr, description) {}
  CommandEntry(const CommandEntry&) = delete;
  CommandEntry& operator=(const CommandEntry&) = delete;

  std::string_view name() const { return name_; }
  bool is_python() const { return make_ == nullptr; }
  std::string_view description() const { return description_; }
  // Precondition: !is_python().
  std::unique_ptr<Command> Make() const { return make_(); }

  // All entries, in no order.
  static const CommandEntry* first() { return first_; }
  const CommandEntry* next() const { return next_; }

 private:
  CommandEntry(std::string_view name, Maker make, std::string_view description) noexcept
      : name_(name), description_(description), make_(make), next_(first_) {
    first_ = this;
  }

  static inline const CommandEntry* first_ = nullptr;

  const std::string_view name_;
  const std::string_view description_;  // of a command of the Python package
  const Maker make_;
  const CommandEntry* const next_;
};

template <typename T>
std::unique_ptr<Command> MakeCommand() {
  return std::make_unique<T>();
}

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_COMMAND_H_
