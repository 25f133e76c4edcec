// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_DESCRIPTION_H_
#define SEALPOINT_LIB_SAFETENSORS_DESCRIPTION_H_

#include <cstdint>

#include "lib/base/errors.h"

// Memory limit for the description of a model or of a checkpoint of another format: names, values,
// positions of tensors. A few bytes of a file can describe a lot.

namespace sealpoint::internal::safetensors {

// A header of many small tensors takes 16 times its bytes. The constant part is for small files.
constexpr std::uint64_t DescriptionBytesMax(std::uint64_t file_bytes) {
  constexpr std::uint64_t kPerByte = 16;
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  return file_bytes > (kMost - kLeast) / kPerByte ? kMost : file_bytes * kPerByte + kLeast;
}

inline Status DescriptionTooLarge(std::uint64_t max_bytes) {
  return MakeError(Code::kLimitExceeded, "its metadata takes more than ", max_bytes,
                   " bytes of memory; --metadata-memory (metadata_memory_bytes) allows more");
}

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_DESCRIPTION_H_
