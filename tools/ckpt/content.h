// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_CONTENT_H_
#define SEALPOINT_TOOLS_CKPT_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "sealpoint/content.h"
#include "tools/common/exit_status.h"
#include "tools/common/json.h"

// What several commands share.

namespace sealpoint::tools {

// Adds --match and --threads, by default one per core, at most 8.
void AddContentOptions(CLI::App& app, ContentOptions& options);
void AddThreads(CLI::App& app, int& threads);

// Adds an option that may be given several times, each time with one value: the argument behind
// the value is not another one.
CLI::Option* AddRepeatable(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                           const std::string& type, const std::string& description);

// A check of an option for an unsigned number: without it "-4" would wrap around.
CLI::Range AtLeast(std::int64_t least);

// The first `depth` parts of a name, between dots.
std::string PrefixOf(const std::string& name, std::size_t depth);

// Arguments that do not fit the checkpoint are a usage error.
ExitStatus StatusOfError(const Status& error);

// Reports the error that ended a command: as the document if `json` is not null, else on standard
// error, with a hint if that is not empty. `corrupt`: kUnreadable if 1 is an answer of the command.
ExitStatus Fail(std::string_view program, const Status& error, const std::string& hint,
                JsonWriter* json, ExitStatus corrupt = ExitStatus::kCorrupt);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_CONTENT_H_
