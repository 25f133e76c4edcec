// SPDX-License-Identifier: Apache-2.0
#include "tools/common/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "sealpoint/version.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"

namespace sealpoint::tools {
namespace {

// Options with what they take, and nothing about checks and other options: "--level LEVEL".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    const std::string name = type.substr(0, type.find(':'));
    return name.empty() ? "" : " " + name;
  }
  // The list of all commands has the first sentence of each.
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description();
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(), text.substr(0, text.find_first_of(".")),
                             get_column_width());
    return out.str();
  }
};

}  // namespace

void AddStandardFlags(CLI::App& app, const std::string& program) {
  app.formatter(std::make_shared<HelpFormatter>());
  AddRaiseLimits(app);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version",
                       fmt::format("{} {} (format version {}; {})", program, VersionString(),
                                   kFormatVersionWritten, InstructionSets()),
                       "Print the version and exit");
}

const CLI::App& ChosenOf(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::string ProgramName(const CLI::App& app) {
  const CLI::App& chosen = ChosenOf(app);
  return &chosen == &app ? app.get_name() : app.get_name() + " " + chosen.get_name();
}

std::optional<ExitStatus> Parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    if (app.exit(error, out, err) != 0) return UsageError(app, argc, argv, error.what());
    Write(out.str());
    return ExitStatus::kValid;
  }
  return std::nullopt;
}

ExitStatus UsageError(const CLI::App& app, int argc, const char* const* argv,
                      std::string_view message) {
  PrintError(ProgramName(app), fmt::format("{}; see --help", message));
  const bool wants_json = std::any_of(
      argv, argv + argc, [](const char* one) { return std::string_view(one) == "--json"; });
  if (wants_json) {
    JsonWriter().Fail(Status(Code::kInvalidArgument, std::string(message)), ExitStatus::kUsage);
  }
  return ExitStatus::kUsage;
}

}  // namespace sealpoint::tools
