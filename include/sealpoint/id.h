// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ID_H_
#define SEALPOINT_ID_H_

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

// 128 bits, which are printed as 32 lower-case hexadecimal digits in byte order.
struct SEALPOINT_EXPORT Id128 {
  std::array<std::byte, 16> bytes{};

  bool is_zero() const { return bytes == std::array<std::byte, 16>{}; }
  std::string ToHex() const;
  // Parses an id. Errors: InvalidArgument unless `hex` is exactly 32 lower-case hexadecimal digits.
  static Result<Id128> FromHex(std::string_view hex);
  // Returns random bits from the operating system (getrandom). Errors: Io.
  static Result<Id128> Random();

  friend auto operator<=>(const Id128&, const Id128&) = default;
};

// 128 bits with one meaning. Values with different meanings cannot be converted or compared to each
// other.
template <typename Meaning>
struct TypedId128 : Id128 {
  TypedId128() = default;
  explicit TypedId128(const Id128& bits) : Id128(bits) {}

  // See Id128::FromHex and Id128::Random.
  static Result<TypedId128> FromHex(std::string_view hex) { return Typed(Id128::FromHex(hex)); }
  static Result<TypedId128> Random() { return Typed(Id128::Random()); }

  friend auto operator<=>(const TypedId128&, const TypedId128&) = default;

 private:
  static Result<TypedId128> Typed(const Result<Id128>& bits) {
    if (!bits.ok()) return bits.error();
    return TypedId128(*bits);
  }
};

template <typename A, typename B>
  requires(!std::same_as<A, B>)
bool operator==(const TypedId128<A>&, const TypedId128<B>&) = delete;

// The random id of one attempt to write a checkpoint. The marker of the checkpoint stores this id.
using AttemptId = TypedId128<struct AttemptMeaning>;
// The random id of one blob.
using BlobId = TypedId128<struct BlobMeaning>;
// The value of a digest, which does not record its algorithm. XXH3-128 is stored in its canonical
// (big-endian) form, so that its hexadecimal digits equal the output of `xxhsum -H2`.
using Digest = TypedId128<struct DigestMeaning>;

// "No step", for example for an imported checkpoint that belongs to no training step.
inline constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

// The committed checkpoint that precedes a new one.
struct ParentRef {
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  friend bool operator==(const ParentRef&, const ParentRef&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_ID_H_
