// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ID_H_
#define SEALPOINT_ID_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

// A 128-bit value: the random id of an attempt or a blob, or a digest in its canonical byte order.
// Printed as 32 lower-case hexadecimal digits in byte order.
struct SEALPOINT_EXPORT Id128 {
  std::array<std::byte, 16> bytes{};

  bool is_zero() const { return *this == Id128{}; }
  std::string ToHex() const;
  // Errors: InvalidArgument unless `hex` is exactly 32 lower-case hexadecimal digits.
  static Result<Id128> FromHex(std::string_view hex);
  // Random bits from the operating system (getrandom). Errors: Io.
  static Result<Id128> Random();

  friend auto operator<=>(const Id128&, const Id128&) = default;
};

using AttemptId = Id128;
using BlobId = Id128;

// The value of a digest; the algorithm is known from the context. XXH3-128 is stored in its
// canonical (big-endian) form, so that its hexadecimal form equals the output of `xxhsum -H2`.
using Digest = Id128;

// "No step": an imported checkpoint that belongs to no training step.
inline constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

// The committed checkpoint that precedes a new one.
struct ParentRef {
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  friend bool operator==(const ParentRef&, const ParentRef&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_ID_H_
