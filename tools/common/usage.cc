// SPDX-License-Identifier: Apache-2.0
#include "tools/common/usage.h"

#include <fmt/format.h>

#include <string>

#include "sealpoint/version.h"

namespace sealpoint::tools {

void AddVersionFlag(CLI::App& app) {
  app.set_version_flag("--version", fmt::format("{} {} (format version {})", app.get_name(),
                                                VersionString(), kFormatVersionWritten));
}

std::optional<ExitStatus> Parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitStatus::kValid : ExitStatus::kUsage;
  }
  return std::nullopt;
}

}  // namespace sealpoint::tools
