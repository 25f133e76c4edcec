// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_INDEX_FILE_H_
#define SEALPOINT_LIB_SAFETENSORS_INDEX_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/safetensors/header.h"
#include "sealpoint/status.h"

// The index of a model in several files: a text in JSON. No I/O here.

namespace sealpoint::internal {

// The file of each tensor, sorted by tensor. Errors: Corrupt (no index; a name of a file that leads
// out of the directory).
Result<StringPairs> DecodeSafetensorsIndex(std::string_view text);
// `files` is sorted by tensor.
std::string EncodeSafetensorsIndex(const StringPairs& files, std::uint64_t total_bytes);

// The first file that is missing of those that are numbered as "model-00001-of-00003.safetensors";
// empty if none is. `names` is sorted.
std::string MissingFile(const std::vector<std::string>& names);
// "model-00001-of-00003.safetensors"; numbers begin with 1.
std::string NumberedFile(std::size_t number, std::size_t count);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAFETENSORS_INDEX_FILE_H_
