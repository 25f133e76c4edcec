// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BYTES_H_
#define SEALPOINT_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"

namespace sealpoint {

// Borrowed bytes. The function that takes the span documents how long the caller must keep the
// memory alive.
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace sealpoint

#endif  // SEALPOINT_BYTES_H_
