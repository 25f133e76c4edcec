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

// A 128-bit value. The text form of an id is 32 lower-case hexadecimal digits, first byte first.
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

// An Id128 for one kind of value, such as the id of an attempt. Values of different kinds cannot be
// assigned to each other or compared.
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
// The value of a digest, without the name of the digest algorithm. An XXH3-128 digest is stored in
// its canonical (big-endian) form, so that its hexadecimal digits equal the output of `xxhsum -H2`.
using Digest = TypedId128<struct DigestMeaning>;

// Means "no step". An imported checkpoint, for example, may belong to no training step.
inline constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

// The parent of a new checkpoint, which is an earlier committed checkpoint.
struct ParentRef {
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  friend bool operator==(const ParentRef&, const ParentRef&) = default;
};

// The base of a checkpoint that is stored as changes to it: a delta (SaveOptions::base).
struct BaseRef {
  AttemptId attempt{};
  Digest index_digest{};
  std::uint64_t step = kNoStep;
  // Number of checkpoints that the delta needs: its base, the base's own base, and so on.
  std::uint32_t depth = 1;
  friend bool operator==(const BaseRef&, const BaseRef&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_ID_H_
