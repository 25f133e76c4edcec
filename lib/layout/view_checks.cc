// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/view_checks.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::layout {
namespace {

// a + b * c, for b that fits 63 bits.
std::optional<std::int64_t> AddProduct(std::int64_t a, std::uint64_t b, std::int64_t c) {
  std::int64_t product = 0;
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(b, c, &product)) return std::nullopt;
  if (__builtin_add_overflow(a, product, &sum)) return std::nullopt;
  return sum;
}

// The bytes that the elements of a box touch, inside `origin`, whose first element is at `at`.
std::optional<TouchedBytes> TouchedBytesOfBox(const Box& box, const Box& origin, std::int64_t at,
                                              const std::vector<std::int64_t>& strides_bytes,
                                              std::uint32_t element_size) {
  TouchedBytes touched{.begin = at, .end = at};
  for (std::size_t d = 0; d < strides_bytes.size(); ++d) {
    const std::uint64_t first = box.offset[d] - origin.offset[d];
    const std::uint64_t last = first + box.extent[d] - 1;
    const std::int64_t stride = strides_bytes[d];
    const auto begin = AddProduct(touched.begin, stride < 0 ? last : first, stride);
    const auto end = AddProduct(touched.end, stride < 0 ? first : last, stride);
    if (!begin || !end) return std::nullopt;
    touched = {.begin = *begin, .end = *end};
  }
  const auto end = AddProduct(touched.end, 1, std::int64_t{element_size});
  if (!end) return std::nullopt;
  touched.end = *end;
  return touched;
}

Status CheckDenseSize(std::size_t size_bytes, const Region& region, DType dtype,
                      std::uint32_t element_size) {
  const std::uint64_t expected = region.element_count() * element_size;
  if (size_bytes == expected) return {};
  return InvalidArgument("memory has ", size_bytes, " bytes, expected ", expected, " for region ",
                         region.ToString(), " of ", DTypeText(dtype));
}

Status CheckStrides(const std::vector<std::int64_t>& strides_bytes, std::size_t origin_bytes,
                    std::size_t size_bytes, const Region& region, std::uint32_t element_size) {
  const std::size_t ndim = region.box.extent.size();
  if (strides_bytes.size() != ndim) {
    return InvalidArgument(strides_bytes.size(), " strides given, expected ", ndim, " for region ",
                           region.ToString());
  }
  const auto touched = TouchedBytesOf(region, strides_bytes, origin_bytes, element_size);
  if (!touched) {
    return InvalidArgument("the strides of region ", region.ToString(), " pass 63 bits");
  }
  if (touched->begin >= 0 && static_cast<std::uint64_t>(touched->end) <= size_bytes) return {};
  return InvalidArgument("memory has ", size_bytes, " bytes, the strides of region ",
                         region.ToString(), " reach bytes ", touched->begin, " to ", touched->end);
}

}  // namespace

std::optional<TouchedBytes> TouchedBytesOf(const Region& region,
                                           const std::vector<std::int64_t>& strides_bytes,
                                           std::size_t origin_bytes, std::uint32_t element_size) {
  if (origin_bytes > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  std::optional<TouchedBytes> all;
  for (const Box& box : DecomposeRun(region)) {
    const auto touched = TouchedBytesOfBox(box, region.box, static_cast<std::int64_t>(origin_bytes),
                                           strides_bytes, element_size);
    if (!touched) return std::nullopt;
    all = all ? TouchedBytes{.begin = std::min(all->begin, touched->begin),
                             .end = std::max(all->end, touched->end)}
              : *touched;
  }
  return all;
}

std::string DTypeText(DType dtype) {
  if (FindDType(dtype)) return std::string(DTypeName(dtype));
  return StrCat("dtype ", static_cast<std::uint16_t>(dtype));
}

template <typename Byte>
Status CheckView(const BasicMemoryView<Byte>& view, const Region& region, DType dtype,
                 std::uint32_t element_size) {
  if (view.device < kHostDevice) {
    return InvalidArgument("device is ", view.device, ", expected ", kHostDevice,
                           " for the host, or the number of a device");
  }
  if (view.data == nullptr) return InvalidArgument("memory is null");
  std::int64_t past = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(view.data), view.size_bytes, &past)) {
    return InvalidArgument("memory of ", view.size_bytes, " bytes ends beyond the address space");
  }
  if (view.dtype != DType::kNone && view.dtype != dtype) {
    return InvalidArgument("memory has elements of ", DTypeText(view.dtype), ", expected ",
                           DTypeText(dtype));
  }
  if (view.is_dense()) return CheckDenseSize(view.size_bytes, region, dtype, element_size);
  return CheckStrides(view.strides_bytes, view.origin_bytes, view.size_bytes, region, element_size);
}

template Status CheckView(const MemoryView& view, const Region& region, DType dtype,
                          std::uint32_t element_size);
template Status CheckView(const MutableMemoryView& view, const Region& region, DType dtype,
                          std::uint32_t element_size);

}  // namespace sealpoint::internal::layout
