// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_BYTES_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sealpoint::internal::foreign {

// Little-endian numbers of up to eight bytes. Precondition: they are there.
std::uint64_t Number(std::string_view bytes, std::size_t offset, std::size_t size);

// The greatest number there is if the result does not fit.
constexpr std::uint64_t CappedAdd(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? ~std::uint64_t{0} : sum;
}
constexpr std::uint64_t CappedMul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ~std::uint64_t{0} : product;
}

// The checksum of zip archives.
std::uint32_t Crc32(std::string_view bytes);

std::string Base64(std::string_view bytes);

// UTF-8, with or without code points that are half of a surrogate pair, which pickles may have.
bool IsText(std::string_view bytes, bool may_have_surrogates);

// A number, with leading zeros up to this width.
std::string Padded(std::uint64_t number, std::size_t width);
std::string HexText(std::uint32_t number, std::size_t width);

// As Python prints a floating-point number.
std::string FloatText(double value);
// As Python prints a string within a container.
std::string QuotedText(std::string_view text);
// An integer in two's complement, little-endian, in decimal.
std::string DecimalText(std::string_view bytes);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_BYTES_H_
