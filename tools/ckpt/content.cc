// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/content.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"

namespace sealpoint::tools {

void AddThreads(CLI::App& app, int& threads) {
  // More threads than these rarely read faster.
  constexpr int kUseful = 8;
  threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kUseful);
  app.add_option("-j,--threads", threads, "Number of threads (default: one per core, at most 8)")
      ->type_name("N")
      ->check(CLI::Range(1, kThreadsMax));
}

CLI::Option* AddRepeatable(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                           const std::string& type, const std::string& description) {
  return app.add_option(name, values, description)
      ->type_name(type)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Range AtLeast(std::int64_t least) { return {least, std::numeric_limits<std::int64_t>::max()}; }

void AddContentOptions(CLI::App& app, ContentOptions& options) {
  AddRepeatable(app, "--match", options.patterns, "PATTERN",
                "Only matching tensors, and no objects");
  AddThreads(app, options.threads);
}

std::string PrefixOf(const std::string& name, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < depth; ++i) {
    end = name.find('.', i == 0 ? 0 : end + 1);
    if (end == std::string::npos) return name;
  }
  return name.substr(0, end);
}

ExitStatus StatusOfError(const Status& error) {
  if (error.code() == Code::kInvalidArgument) return ExitStatus::kUsage;
  return ExitStatusOf(VerdictOf(error));
}

ExitStatus Fail(std::string_view program, const Status& error, const std::string& hint,
                JsonWriter* json, ExitStatus corrupt) {
  ExitStatus status = StatusOfError(error);
  if (status == ExitStatus::kCorrupt) status = corrupt;
  if (json != nullptr) {
    json->Fail(error, status);
    return status;
  }
  Flush();  // standard output comes first, if both are one file
  PrintError(program, error.ToString());
  const std::string of_limit = HintForLimit(error);
  for (const std::string& one : {of_limit, hint}) {
    if (!one.empty()) PrintError(program, "hint: " + one);
  }
  return status;
}

}  // namespace sealpoint::tools
