// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FORMATS_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FORMATS_H_

#include <optional>
#include <string>
#include <vector>

#include "tools/ckpt-inspect/foreign/files.h"
#include "tools/ckpt-inspect/foreign/state.h"

// The readers of the formats that ckpt-inspect knows besides its own. All throw Failure.

namespace sealpoint::tools {

ForeignState ReadSafetensors(const std::string& path, SourceFiles& files);
ForeignState ReadTorchFile(const std::string& path, SourceFiles& files);
ForeignState ReadDcp(const std::string& path, SourceFiles& files);
ForeignState ReadMegatron(const std::string& path, SourceFiles& files);

// Whether a directory has Megatron's marker. Unsupported if it names another format of Megatron's.
bool IsMegatron(const std::string& path, SourceFiles& files);
// The directory of the newest iteration, of a folder of iterations.
std::optional<std::string> NewestIteration(const std::string& path, SourceFiles& files);
bool IsDcp(const std::vector<SourceEntry>& entries);

// What a path holds. Nothing if it is of no format that is known: then nothing is wrong with it.
// Errors: of a known format, what is wrong with it, or with this kind of it.
Result<std::optional<ForeignState>> ReadForeign(const std::string& path);
// The same of a path of another storage, which is known to be a directory or a file.
Result<std::optional<ForeignState>> ReadForeign(const std::string& path, bool is_directory,
                                                SourceFiles& files);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FORMATS_H_
