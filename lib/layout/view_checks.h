// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_VIEW_CHECKS_H_
#define SEALPOINT_LIB_LAYOUT_VIEW_CHECKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::layout {

// Bytes of a memory view, counted from its first one.
struct TouchedBytes {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const TouchedBytes&, const TouchedBytes&) = default;
};

// The smallest interval of memory with all elements of a region with these strides (of its box; its
// first element is at `origin_bytes`). Empty if a bound does not fit 63 bits. Preconditions: the
// region is valid, and there is a stride for each dimension.
std::optional<TouchedBytes> TouchedBytesOf(const Region& region,
                                           const std::vector<std::int64_t>& strides_bytes,
                                           std::size_t origin_bytes, std::uint32_t element_size);

// "f32"; "dtype 999" if it is not registered.
std::string DTypeText(DType dtype);

// Checks that memory can hold or receive the elements of a region. Errors: InvalidArgument: null
// memory, no such device, another dtype, another size (dense memory must have exactly the region's
// size), strides of another ndim or outside the memory. Precondition: the region is valid.
template <typename Byte>
Status CheckView(const BasicMemoryView<Byte>& view, const Region& region, DType dtype,
                 std::uint32_t element_size);

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_VIEW_CHECKS_H_
