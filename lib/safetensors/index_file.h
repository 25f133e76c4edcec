// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_INDEX_FILE_H_
#define SEALPOINT_LIB_SAFETENSORS_INDEX_FILE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/name_pattern.h"
#include "lib/safetensors/header.h"
#include "sealpoint/status.h"

// The index of a model in several files: a text in JSON, of safetensors or of torch.save. No I/O
// here.

namespace sealpoint::internal::safetensors {

// The file of each tensor, sorted by tensor. Errors: Corrupt (no index; a name of a file that leads
// out of the directory).
Result<StringPairs> DecodeSafetensorsIndex(std::string_view text);

// Maps tensors to files, as interpreted by the programs that load such a model.
class ShardIndex {
 public:
  // Errors: those of DecodeSafetensorsIndex; InvalidArgument (a pattern of `allow_missing`).
  static Result<ShardIndex> Decode(std::string_view text,
                                   const std::vector<std::string>& allow_missing);

  // Sorted.
  std::vector<std::string> files() const;
  // True if the file may be missing, because each of its tensors may be.
  bool MayMiss(std::string_view file) const;
  // The error of a file that is not there and has to be.
  static Status NoFile();
  // False if the index names another file for the tensor: then this one is not read.
  bool MayHold(std::string_view tensor, std::string_view file) const;
  // The tensors that no file has, sorted. `found`: pairs of tensors and files. Errors: Corrupt (one
  // that may not be missing, or that is in other files alone).
  Result<std::vector<std::string>> Missing(
      const std::set<std::pair<std::string_view, std::string_view>>& found) const;

 private:
  bool IsAllowed(std::string_view tensor) const;

  StringPairs file_of_;  // sorted by tensor
  std::vector<NamePattern> allowed_;
};

// The first missing file of a set numbered as "model-00001-of-00003.safetensors"; empty if the set
// is complete. `names` is sorted.
std::string MissingFile(const std::vector<std::string>& names);

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_INDEX_FILE_H_
