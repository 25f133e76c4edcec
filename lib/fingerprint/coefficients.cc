// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/coefficients.h"

#include <memory>
#include <mutex>

#include "lib/base/endian.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::fingerprint {
namespace {

// g of the specification.
Pair ValueOfDigit(std::uint32_t dimension, std::uint32_t digit, std::uint32_t value) {
  Bytes message = {std::byte{'S'}, std::byte{'P'}, std::byte{'F'}, std::byte{'1'}};
  message.resize(16);
  StoreLe<std::uint32_t>(message, 4, dimension);
  StoreLe<std::uint32_t>(message, 8, digit);
  StoreLe<std::uint32_t>(message, 12, value);
  const Digest digest = ComputeDigest(message);
  Pair halves{};  // low, high; a digest is big-endian
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    std::uint64_t& half = halves[i < 8 ? 1 : 0];
    half = half << 8 | std::to_integer<std::uint64_t>(digest.bytes[i]);
  }
  constexpr std::uint64_t kUnits = Fingerprint::kModulus - 1;
  return {1 + halves[0] % kUnits, 1 + halves[1] % kUnits};
}

}  // namespace

Dimension::Dimension(std::uint32_t d) {
  for (std::uint32_t digit = 0; digit < kDigits; ++digit) {
    digits_[digit][0] = {1, 1};
    for (std::uint32_t value = 1; value < kBase; ++value) {
      digits_[digit][value] = ValueOfDigit(d, digit, value);
    }
  }
}

const Dimension& Dimension::FromLast(std::size_t d) {
  struct Entry {
    std::once_flag once;
    std::unique_ptr<const Dimension> dimension;
  };
  // Never destroyed: a save in the background may outlive static objects.
  static auto& entries = *new std::array<Entry, kDimensions>;
  Entry& entry = entries[d];
  std::call_once(entry.once,
                 [&] { entry.dimension.reset(new Dimension(static_cast<std::uint32_t>(d))); });
  return *entry.dimension;
}

Pair Dimension::OfHighDigits(std::uint64_t index) const {
  Pair product = {1, 1};
  index /= kBase;
  for (std::size_t digit = 1; index > 0; ++digit, index /= kBase) {
    if (index % kBase != 0) product = Multiply(product, digits_[digit][index % kBase]);
  }
  return product;
}

}  // namespace sealpoint::internal::fingerprint
