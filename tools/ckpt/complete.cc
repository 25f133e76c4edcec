// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/complete.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "tools/common/output.h"

namespace sealpoint::tools {
namespace {

void PrintCandidate(std::string_view word, std::string_view description) {
  std::string line(description.substr(0, description.find(". ")));
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  Print("{}\t{}\n", word, line);
}

void CompleteOption(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) {
      PrintCandidate("-" + name, option->get_description());
    }
    for (const std::string& name : option->get_lnames()) {
      PrintCandidate("--" + name, option->get_description());
    }
  }
}

// The type is "DIR" of a directory, and "LEVEL:{files,structure,full}" with a choice.
void CompleteValue(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "DIR" || type == "PATH") Print(":\n");
  const std::size_t begin = type.find('{');
  if (begin == std::string::npos) return;
  std::string_view choices = std::string_view(type).substr(begin + 1);
  choices = choices.substr(0, choices.find('}'));
  while (!choices.empty()) {
    const std::string_view choice = choices.substr(0, choices.find(','));
    PrintCandidate(choice, "");
    choices.remove_prefix(std::min(choice.size() + 1, choices.size()));
  }
}

}  // namespace

void Complete(const CLI::App& app, std::span<const char* const> words) {
  if (words.empty()) return;
  const std::string last = words.back();
  const auto before = words.first(words.size() - 1);
  const CLI::App* chosen = &app;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (std::ranges::find(before, command->get_name()) != before.end()) chosen = command;
  }
  const CLI::Option* option = before.empty() ? nullptr : chosen->get_option_no_throw(before.back());
  if (option != nullptr && option->get_items_expected_max() > 0) return CompleteValue(*option);
  if (last.starts_with('-')) return CompleteOption(*chosen);
  const auto commands = chosen->get_subcommands({});
  if (commands.empty()) Print(":\n");
  for (const CLI::App* command : commands) {
    PrintCandidate(command->get_name(), command->get_description());
  }
}

}  // namespace sealpoint::tools
