// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-verify/options.h"

#include <algorithm>
#include <map>
#include <thread>

#include "tools/common/usage.h"

namespace sealpoint::tools {
namespace {

constexpr int kThreadsMax = 1024;

// More threads than these rarely read faster.
int DefaultThreads() {
  constexpr int kUseful = 8;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kUseful);
}

constexpr const char* kFooter =
    "Levels: files (marker, index, lengths of the blobs), structure (and all but the chunks),\n"
    "full (and every chunk and every padding byte, read past the page cache).\n"
    "One line per violation: VERDICT: RULE FILE:OFFSET tensor|object \"NAME\": MESSAGE. A file\n"
    "with more than 20 of them has one line in all, with their number, unless --all is given.\n"
    "Exit status: 0 valid, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read or "
    "nothing\n"
    "found, 5 incomplete, 64 usage, 74 standard output could not be written. Of several paths\n"
    "1, 5, 4, 3, 2 win in this order.";

}  // namespace

std::optional<ExitStatus> ParseOptions(int argc, const char* const* argv, Options& options) {
  CLI::App app("Says whether checkpoints can be trusted.", "ckpt-verify");
  AddStandardFlags(app);
  app.footer(kFooter);
  options.threads = DefaultThreads();
  std::string level = "full";
  app.add_option("PATH", options.paths, "Directories of checkpoints")->type_name("");
  app.add_option("--series", options.series, "Check every checkpoint of a series")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--level", level, "files, structure or full (default)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"files", "structure", "full"}));
  app.add_option("-j,--threads", options.threads, "Threads (default: one per core, at most 8)")
      ->type_name("N")
      ->check(CLI::Range(1, kThreadsMax));
  app.add_flag("--all", options.all, "List every violation and every note");
  app.add_flag("--json", options.json, "Print one JSON document, also after an error");
  app.add_flag("-q,--quiet", options.quiet, "Print violations only");
  if (const auto status = Parse(app, argc, argv)) return status;
  if (options.paths.empty() && options.series.empty()) {
    return UsageError(app, argc, argv, "PATH or --series DIR is required");
  }
  const std::map<std::string, VerifyLevel> levels = {{"files", VerifyLevel::kFiles},
                                                     {"structure", VerifyLevel::kStructure},
                                                     {"full", VerifyLevel::kFull}};
  options.level = levels.at(level);
  return std::nullopt;
}

}  // namespace sealpoint::tools
