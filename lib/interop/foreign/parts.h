// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_PARTS_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_PARTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/interop/foreign/files.h"

// Files and directories that are a state only together, told by their names.

namespace sealpoint::internal::foreign {

// A name in which what differs among the parts of one state is '#': "consolidated.#.pth",
// "model-#-of-00003.safetensors". Empty if it is not that of a part.
std::string FamilyOf(std::string_view name);

// Throws Unsupported if the file's name says that its values have no form here.
void CheckKind(const std::string& file);
// The other files or directories of the state of which the file is a part. Throws Unsupported if
// it is one, unless the options allow that.
std::vector<SourceEntry> CheckWhole(const std::string& file, SourceFiles& files);
// The state names them as left out.
void NameOthers(const std::vector<SourceEntry>& others, ForeignCheckpoint& state);

// The state gets what lies beside its directory and belongs to it, as left out.
void NameRest(const std::string& directory, SourceFiles& files, ForeignCheckpoint& state);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_PARTS_H_
