// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_HEADER_H_
#define SEALPOINT_LIB_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

// The header of a safetensors file: eight bytes with the length of a JSON text, and the text. The
// tensors follow. No I/O in this file.

namespace sealpoint::internal::safetensors {

inline constexpr std::uint64_t kSafetensorsLengthBytes = 8;

using StringPairs = std::vector<std::pair<std::string, std::string>>;

struct HeaderTensor {
  std::string name;
  DType dtype = DType::kNone;
  Shape shape;
  std::uint64_t begin = 0;  // in bytes after the header
  std::uint64_t end = 0;
  friend bool operator==(const HeaderTensor&, const HeaderTensor&) = default;
};

struct SafetensorsHeader {
  StringPairs metadata;               // sorted by key
  std::vector<HeaderTensor> tensors;  // sorted by begin, then end
};

// Decodes the text of a header, which `payload_size` bytes follow in the file. Errors, with the
// tensor or the offset in the file: Corrupt (not JSON, a duplicate key, a wrong member; a shape
// that does not match the bytes of its range; ranges that leave a gap, overlap, or do not reach the
// end), Unsupported (a dtype; a shape of F4 with half a byte), Incomplete (ranges beyond the end).
Result<SafetensorsHeader> DecodeSafetensorsHeader(std::string_view text,
                                                  std::uint64_t payload_size);

// Sorts by key. False if a key is there twice.
bool SortUnique(StringPairs& pairs);

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_HEADER_H_
