// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONVERT_ELEMENT_CONVERTER_H_
#define SEALPOINT_LIB_CONVERT_ELEMENT_CONVERTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "sealpoint/dtype.h"

namespace sealpoint::internal::convert {

struct Number;

// Converts elements until one cannot be converted; returns the number converted.
using ConvertRow = std::uint64_t (*)(const std::byte* source, std::int64_t source_stride_bytes,
                                     std::byte* target, std::int64_t target_stride_bytes,
                                     std::uint64_t count, Rounding rounding);

// Changes the dtype of elements. A small value; thread safety: as a const object.
class ElementConverter {
 public:
  // Empty if these dtypes do not convert.
  static std::optional<ElementConverter> Make(DType from, const Conversion& conversion);

  // Converts `count` elements with the given strides. Returns the number of elements before the
  // first that cannot be converted, or `count` if all can. From that element on, the target is
  // unspecified. Precondition: the two sides do not overlap.
  std::uint64_t Convert(const std::byte* source, std::int64_t source_stride_bytes,
                        std::byte* target, std::int64_t target_stride_bytes,
                        std::uint64_t count) const;

  DType from() const { return from_; }
  const Conversion& conversion() const { return conversion_; }
  // For messages: "the f32 value 1e+10 has no f16 counterpart".
  std::string Describe(const std::byte* element) const;

 private:
  using Decode = void (*)(const std::byte* source, std::int64_t stride_bytes, std::size_t count,
                          Number* numbers);
  using Encode = std::size_t (*)(const Number* numbers, std::size_t count, Rounding rounding,
                                 std::byte* target, std::int64_t stride_bytes);
  // How an element of a dtype is made of numbers: two for a complex dtype, none if the dtype does
  // not convert.
  struct Components;
  static Components ComponentsOf(DType dtype);

  std::uint64_t ConvertNumbers(const std::byte* source, std::int64_t source_stride_bytes,
                               std::byte* target, std::int64_t target_stride_bytes,
                               std::uint64_t count) const;

  DType from_{};
  Conversion conversion_{};
  ConvertRow convert_row_ = nullptr;  // if not null, used instead of decode_ and encode_
  Decode decode_ = nullptr;
  Encode encode_ = nullptr;
  std::uint32_t component_count_ = 1;
  std::uint32_t source_component_size_ = 0;
  std::uint32_t target_component_size_ = 0;
};

}  // namespace sealpoint::internal::convert

#endif  // SEALPOINT_LIB_CONVERT_ELEMENT_CONVERTER_H_
