// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_PARTS_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_PARTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/interop/foreign/files.h"

// Files and directories that form a state only together, recognised by their names.

namespace sealpoint::internal::foreign {

// A name with '#' for the part that differs among the parts of one state: "consolidated.#.pth",
// "model-#-of-00003.safetensors". Empty if the name is not that of a part.
std::string FamilyOf(std::string_view name);

// Throws Unsupported if the file's name shows that its values have no form here.
void CheckKind(const std::string& file);
// The other files or directories of the state that the file is a part of. Throws Unsupported if
// there are any, unless the options allow that.
std::vector<SourceEntry> CheckWhole(const std::string& file, SourceFiles& files);
// The state names them as left out.
void NameOthers(const std::vector<SourceEntry>& others, ForeignCheckpoint& state);

// Adds files next to the state's directory that belong to it as left out.
void NameRest(const std::string& directory, SourceFiles& files, ForeignCheckpoint& state);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_PARTS_H_
