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
// What cannot be read is left out if it is of an unknown kind; else it is thrown, or Unread if
// reading goes on.
struct BesideOptions {
  bool may_link = false;  // symbolic links may lead out of the directory
  std::string index{};    // the name of the one that says which files are the model's
  std::set<std::string> format_names{};  // what in the directory belongs to its format
};
void ReadBeside(const BesideOptions& options, SourceFiles& files, ForeignCheckpoint& state);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_
