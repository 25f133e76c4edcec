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
  // Takes exactly 32 lower-case hexadecimal digits, else InvalidArgument.
  static Result<Id128> FromHex(std::string_view hex);
  // Random bits from the system (getrandom). Errors: Io.
  static Result<Id128> Random();

  friend auto operator<=>(const Id128&, const Id128&) = default;
};

using AttemptId = Id128;
using BlobId = Id128;

// The value of a digest whose algorithm is known from the context. XXH3-128 is held in its
// canonical (big-endian) form, so that hex output equals that of `xxhsum -H2`.
using Digest = Id128;

// "No step": a checkpoint that was imported and belongs to no training step.
inline constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

// A committed checkpoint that the next one follows.
struct ParentRef {
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  friend bool operator==(const ParentRef&, const ParentRef&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_ID_H_
