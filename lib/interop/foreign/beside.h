// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_

#include <functional>
#include <set>
#include <string>

#include "lib/interop/foreign/files.h"

namespace sealpoint::internal::foreign {

// Files in a directory that are not part of its format. The Trainer of Hugging Face and accelerate
// store optimizer, schedule and random states as torch.save files next to the weights; Lightning
// stores everything except tensors next to a DCP directory. Such files become part of the state
// under their names. All other files are listed as left out.
//
// An unreadable file is left out if its kind is unknown. Otherwise its error is thrown, or it
// becomes Unread if reading continues.
struct BesideOptions {
  bool may_link = false;                 // symbolic links may lead out of the directory
  std::string index{};                   // name of the index with the model's files
  std::set<std::string> format_names{};  // names that belong to the directory's format
};
void ReadBeside(const BesideOptions& options, SourceFiles& files, ForeignCheckpoint& state);

// Lists the files of the state's directory. `meaning_of`: the meaning of a name; null if the file
// has no tensors of the state.
void DescribeFiles(SourceFiles& files, ForeignCheckpoint& state,
                   const std::function<const char*(const std::string& name)>& meaning_of);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_BESIDE_H_
