// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_BESIDE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_BESIDE_H_

#include "tools/ckpt-inspect/foreign/files.h"
#include "tools/ckpt-inspect/foreign/state.h"

namespace sealpoint::tools {

// What lies in a directory beside the files of its format, as far as it is the rest of a training's
// state: files of torch.save, and what the Trainer says of its progress. It is added to the state
// under their names, and the meanings of those files are changed; all other files stay as not read.
// `may_link`: whether symbolic links may lead out of the directory. Throws Failure: a damaged file.
void ReadBeside(bool may_link, SourceFiles& files, ForeignState& state);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_BESIDE_H_
