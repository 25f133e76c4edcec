// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt/command.h"
#include "tools/ckpt/complete.h"
#include "tools/common/output.h"
#include "tools/common/usage.h"

namespace sealpoint::tools {
namespace {

constexpr const char* kProgram = "ckpt";
// The first argument of the completion files of shells.
constexpr std::string_view kComplete = "__complete";

const CommandEntry kConvert("convert", "Converts a checkpoint between formats.");
const CommandEntry kBench("bench", "Measures Sealpoint and other ways to save on your storage.");

std::vector<const CommandEntry*> SortedEntries() {
  std::vector<const CommandEntry*> entries;
  for (const auto* entry = CommandEntry::first(); entry != nullptr; entry = entry->next()) {
    entries.push_back(entry);
  }
  std::ranges::sort(entries, {}, &CommandEntry::name);
  return entries;
}

// Null: there is no command of this name.
const CommandEntry* FindEntry(std::string_view name) {
  const CommandEntry* entry = CommandEntry::first();
  while (entry != nullptr && entry->name() != name) entry = entry->next();
  return entry;
}

// All commands.
class Program {
 public:
  Program() : app_("", kProgram) {
    AddStandardFlags(app_, kProgram);
    app_.description(
        "Manages checkpoints. See `ckpt COMMAND --help` and `man ckpt-COMMAND` for details.");
    app_.require_subcommand(1);
    for (const CommandEntry* entry : SortedEntries()) Add(*entry);
  }

  // `argv` begins with the name of the program.
  ExitStatus Run(std::span<const char* const> argv) {
    const int argc = static_cast<int>(argv.size());
    if (argc > 1 && argv[1] == kComplete) {
      Complete(app_, argv.subspan(2));
      return ExitStatus::kValid;
    }
    if (argc > 1 && argv[1][0] != '-' && FindEntry(argv[1]) == nullptr) {
      return UsageError(app_, argc, argv.data(), fmt::format("unknown command {}", argv[1]));
    }
    if (const std::optional<ExitStatus> status = Parse(app_, argc, argv.data())) return *status;
    const auto chosen = commands_.find(&ChosenOf(app_));
    if (chosen == commands_.end()) {
      return UsageError(app_, argc, argv.data(), "options must follow this command");
    }
    return chosen->second->Run(ProgramName(app_));
  }

 private:
  void Add(const CommandEntry& entry) {
    const std::string name(entry.name());
    CLI::App& app = *app_.add_subcommand(name, std::string(entry.description()));
    if (entry.is_python()) {
      app.prefix_command();
      return;
    }
    AddStandardFlags(app, fmt::format("{} {}", kProgram, name));
    commands_[&app] = entry.Make();
    commands_[&app]->Describe(app);
  }

  CLI::App app_;
  std::map<const CLI::App*, std::unique_ptr<Command>> commands_;
};

// Whether the words are for the Python package: one of its commands, a copy into another format, or
// the completion of what stands behind these.
bool IsForPython(std::span<const char* const> words) {
  const bool completes = words.size() > 2 && words[0] == kComplete;
  const std::size_t first = completes ? 1 : 0;
  const CommandEntry* entry = words.size() > first ? FindEntry(words[first]) : nullptr;
  if (entry == nullptr || entry->is_python()) return entry != nullptr;
  return (entry->name() == "copy" || entry->name() == "flatten") &&
         std::ranges::any_of(words.subspan(first + 1), [](std::string_view word) {
           return word == "--to" || word.starts_with("--to=");
         });
}

}  // namespace

std::optional<ExitStatus> RunProgram(std::span<const char* const> words) {
  if (IsForPython(words)) return std::nullopt;
  OpenStandardStreams();
  std::vector<const char*> argv = {kProgram};
  argv.insert(argv.end(), words.begin(), words.end());
  return FinishOutput(kProgram, Program().Run(argv));
}

}  // namespace sealpoint::tools
