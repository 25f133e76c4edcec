// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_MAKE_MADE_H_
#define SEALPOINT_TOOLS_CKPT_MAKE_MADE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "sealpoint/phases.h"
#include "sealpoint/repack.h"
#include "tools/common/exit_status.h"
#include "tools/common/json.h"

// What the commands share that make new checkpoints.

namespace sealpoint::tools {

// The end of their footers: exit statuses.
inline constexpr const char* kMadeStatuses =
    "Exit status: 0 done, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read or "
    "written,\n"
    "or nothing found, 5 incomplete, 64 usage, or refused, 74 standard output could not be "
    "written.";

void AddDestination(CLI::App& app, std::string& to);
// --memory, of an option in bytes.
void AddMemory(CLI::App& app, std::uint64_t& memory_bytes);
// --compress, --chunk, --blobs, --blob-size, --threads, --memory, --dry-run.
void AddRepackOptions(CLI::App& app, RepackOptions& options);

// Shows the progress on the line, which must live until the call is over.
PhaseCallback ProgressOn(ProgressLine& line, std::string_view what);

// Shows what was created, or would be: a line "created DIR: …", or a document with the members that
// `more` adds.
ExitStatus ShowMade(bool is_json, const std::string& path, const RepackReport& report,
                    const RepackOptions& options,
                    const std::function<void(JsonWriter& json)>& more = {});

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_MAKE_MADE_H_
