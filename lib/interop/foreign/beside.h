// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_

#include <set>
#include <string>

#include "lib/interop/foreign/files.h"

namespace sealpoint::internal::foreign {

// What lies in a directory beside the files of its format. The Trainer of Hugging Face and
// accelerate store optimizer, schedule and random states as files of torch.save beside the weights,
// Lightning all but tensors beside a directory of DCP: such files become part of the state, under
// their names. All else is left out, by name.
//
// `format_names`: names in the directory that belong to its format. `may_link`: symbolic links may
// lead out of the directory. What cannot be read is left out if it is of an unknown kind; else it
// is thrown, or Unread if reading goes on.
void ReadBeside(bool may_link, const std::set<std::string>& format_names, SourceFiles& files,
                ForeignCheckpoint& state);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_
