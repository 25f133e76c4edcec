// SPDX-License-Identifier: Apache-2.0
//
// ckpt: looks after checkpoints. Each subcommand is a Command.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt/command.h"
#include "tools/ckpt/complete.h"
#include "tools/common/output.h"
#include "tools/common/storages.h"
#include "tools/common/usage.h"

namespace sealpoint::tools {
namespace {

constexpr std::string_view kProgram = "ckpt";
// The first argument of the completion files of shells.
constexpr std::string_view kComplete = "__complete";

std::vector<const CommandEntry*> SortedEntries() {
  std::vector<const CommandEntry*> entries;
  for (const auto* entry = CommandEntry::first(); entry != nullptr; entry = entry->next()) {
    entries.push_back(entry);
  }
  std::ranges::sort(entries, {}, &CommandEntry::name);
  return entries;
}

// The name by which the program was called, if that is the old name of one of its commands.
const CommandEntry* FindOldName(std::string_view called) {
  const std::string_view name = called.substr(called.rfind('/') + 1);
  for (const CommandEntry* entry : SortedEntries()) {
    if (!name.empty() && entry->old_name() == name) return entry;
  }
  return nullptr;
}

// The program under one of its names: all commands, or the one of an old name.
class Program {
 public:
  explicit Program(const CommandEntry* only)
      : name_(only != nullptr ? only->old_name() : kProgram), app_("", name_) {
    if (only != nullptr) {
      Add(app_, name_, *only);
      return;
    }
    AddStandardFlags(app_, name_);
    app_.description(
        "Looks after checkpoints. `ckpt COMMAND --help` and `man ckpt-COMMAND` say more.");
    app_.require_subcommand(1);
    for (const CommandEntry* entry : SortedEntries()) {
      const std::string command(entry->name());
      CLI::App& added = *app_.add_subcommand(command);
      Add(added, name_ + " " + command, *entry);
      if (const std::string alias = AliasOf(*entry); !alias.empty()) added.alias(alias);
    }
  }

  const std::string& name() const { return name_; }

  ExitStatus Run(int argc, const char* const* argv) {
    if (argc > 1 && argv[1] == kComplete) {
      Complete(app_, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
      return ExitStatus::kValid;
    }
    if (argc > 1 && commands_.size() > 1 && argv[1][0] != '-' && !HasCommand(argv[1])) {
      return UsageError(app_, argc, argv, fmt::format("there is no command {}", argv[1]));
    }
    if (const std::optional<ExitStatus> status = Parse(app_, argc, argv)) return *status;
    return commands_.at(&ChosenOf(app_))->Run(ProgramName(app_));
  }

 private:
  void Add(CLI::App& app, const std::string& program, const CommandEntry& entry) {
    AddStandardFlags(app, program);
    commands_[&app] = entry.Make();
    commands_[&app]->Describe(app);
  }
  bool HasCommand(const std::string& name) const {
    return std::ranges::any_of(commands_,
                               [&](const auto& one) { return one.first->check_name(name); });
  }
  // "inspect", whose old name is ckpt-inspect, if the command has another name now.
  std::string AliasOf(const CommandEntry& entry) const {
    const std::string begin = name_ + "-";
    const std::string_view old = entry.old_name();
    const bool is_other = old.starts_with(begin) && old.substr(begin.size()) != entry.name();
    return is_other ? std::string(old.substr(begin.size())) : "";
  }

  const std::string name_;
  CLI::App app_;
  std::map<const CLI::App*, std::unique_ptr<Command>> commands_;
};

}  // namespace
}  // namespace sealpoint::tools

int main(int argc, char** argv) {
  using namespace sealpoint::tools;  // NOLINT: a program
  OpenStandardStreams();
  RegisterStorages();
  Program program(FindOldName(argc > 0 ? argv[0] : ""));
  return static_cast<int>(FinishOutput(program.name(), program.Run(argc, argv)));
}
