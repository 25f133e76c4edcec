// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_GGUF_HEADER_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_GGUF_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/interop/foreign/files.h"
#include "sealpoint/interop.h"
#include "sealpoint/region.h"

// The header of one GGUF file of llama.cpp: a version, keys with typed values, and the tensors.

namespace sealpoint::internal::foreign {

inline constexpr std::string_view kGguf = "GGUF";

struct GgufKey {
  std::string name;
  std::string value;  // JSON: ["uint32", 1], ["array", ["string", ["a", "b"]]]
};

struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;
  Shape shape;              // as stored: the last extent of quantized blocks is in bytes
  std::uint64_t begin = 0;  // in the file
  std::uint64_t size = 0;
};

struct GgufHeader {
  std::uint64_t version = 0;
  std::vector<GgufKey> keys;        // in the file's order
  std::vector<GgufTensor> tensors;  // in the file's order, which is that of their bytes
};

// Decodes the header, and charges its memory to the budget of the file. Throws Failure with the
// offset: Unsupported (version 1, big-endian, an unknown type of a tensor), Incomplete (a length or
// a tensor goes beyond the end), Corrupt (text that is not UTF-8; an unknown type of a value; more
// than 4 dimensions; blocks that do not fit; tensors that overlap, leave a gap or are not aligned;
// bytes after the last one), LimitExceeded (nested arrays).
GgufHeader ReadGgufHeader(const SourceFile& file);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_GGUF_HEADER_H_
