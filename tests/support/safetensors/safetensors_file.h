// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_SAFETENSORS_SAFETENSORS_FILE_H_
#define SEALPOINT_TESTS_SUPPORT_SAFETENSORS_SAFETENSORS_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sealpoint::testing {

// A file of safetensors: any header behind its length, and what follows.
inline std::string SafetensorsFileOf(std::string_view header, std::string_view payload) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<char>(std::uint64_t{header.size()} >> 8 * i));
  }
  return file.append(header).append(payload);
}

// `count` bytes that count up from `first`.
inline std::string CountingBytes(std::size_t count, unsigned first = 0) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(first + i));
  return bytes;
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_SAFETENSORS_SAFETENSORS_FILE_H_
