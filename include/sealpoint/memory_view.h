// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MEMORY_VIEW_H_
#define SEALPOINT_MEMORY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/export.h"

namespace sealpoint {

// The device number of host memory.
inline constexpr int kHostDevice = -1;

// An lvalue container, an array or a span. Its elements must have a dtype (kDTypeOf) or be of type
// std::byte, which means raw bytes of any dtype. Temporary containers are excluded, because the
// view would outlive them.
template <typename Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                       std::ranges::borrowed_range<Range> &&
                       (std::is_same_v<std::ranges::range_value_t<Range>, std::byte> ||
                        kDTypeOf<std::ranges::range_value_t<Range>> != DType::kNone);

// An ElementRange with writable elements.
template <typename Range>
concept MutableElementRange =
    ElementRange<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

// A view of host or CUDA device memory that holds or receives the elements of a region. The memory
// is borrowed: each function that accepts a view documents how long the caller must keep the memory
// alive and, for a source, unchanged. A value type; the functions below never fail.
//
// Concurrent changes to a source, by a thread or by work on a device, cannot make the checkpoint
// corrupt. Each byte is first copied, and only the copy is digested, encoded and stored, so digests
// always match the stored data. However, the stored tensor may then contain a mix of old and new
// values. The library cannot detect such a mix.
//
// Before any byte is moved, the library checks the following conditions; a violation is
// InvalidArgument with the tensor's name. If the view has a dtype, it must be the tensor's dtype
// (or the target dtype of a conversion). A dense view must have exactly the size of the region.
// Each element of a strided view must be within the view's `size_bytes`, and elements of a strided
// destination must not overlap.
//
// If the view has no strides, the elements of the region start at `data` and are dense, in the
// row-major order of the region's box. If the view has strides, there is one stride in bytes per
// dimension. Element (i0, i1, …) of the region's *box* is then at data + origin_bytes +
// i0*strides[0] + i1*strides[1] + …. Strides refer to the box even if the region is only a run of
// the box. Strides may be negative. The region of a strided destination must be a plain box, and
// elements of the destination must not overlap. To detect overlap, the library sorts the strides of
// all dimensions with an extent above 1 by absolute value. Each stride must be at least the span in
// bytes of the dimensions with smaller strides. Any alignment is allowed.
//
// Device memory: `data` is an address on `device`; the host never dereferences it. Memory and
// stream must belong to the device's primary context, which is the context of the CUDA runtime API.
// - Synchronization: the library accesses the memory only after the completion of all work that was
//   queued on `stream` before the call. The library waits for no other work. If other streams write
//   to a source or access a destination, first make `stream` wait for events of these streams, or
//   synchronize these streams.
// - Completion: once the call that reads a source has returned, any stream may overwrite the
//   source. Once the call that fills a destination has returned, any stream may read the data. The
//   call leaves no work on `stream`.
// - Ownership: memory and stream belong to the caller and must exist until the call that reads the
//   source or fills the destination returns. The library queues only event records on `stream`;
//   copies run on the library's own streams. The stream must not be capturing a graph.
template <typename Byte>
struct BasicMemoryView {
  using Address = std::conditional_t<std::is_const_v<Byte>, const void*, void*>;

  Byte* data = nullptr;
  // Size of the memory that starts at `data`, including gaps between strided elements.
  std::size_t size_bytes = 0;
  // Dtype of the elements. kNone means raw bytes, which are accepted for any dtype.
  DType dtype = DType::kNone;
  std::vector<std::int64_t> strides_bytes{};  // empty: dense
  // Offset in bytes from `data` to element (0, 0, …) of the box; nonzero if a stride is negative.
  // Ignored if the view is dense.
  std::size_t origin_bytes = 0;
  int device = kHostDevice;  // CUDA device number, from 0
  // The caller's cudaStream_t or CUstream; null means the (legacy) default stream of the device's
  // primary context. Ignored for host memory.
  void* stream = nullptr;
  // See PlanOnly.
  bool is_plan_only = false;

  // Views the elements of a container, an array or a span, for example `Host(weights)`. The view
  // has the dtype of the elements, or kNone if they are std::byte.
  template <ElementRange Range>
    requires(std::is_const_v<Byte> || MutableElementRange<Range>)
  static BasicMemoryView Host(Range&& elements, std::vector<std::int64_t> strides_bytes = {},
                              std::size_t origin_bytes = 0) {
    using Element = std::ranges::range_value_t<Range>;
    BasicMemoryView view =
        Host(std::ranges::data(elements), std::ranges::size(elements) * sizeof(Element),
             std::move(strides_bytes), origin_bytes);
    view.dtype = kDTypeOf<Element>;
    return view;
  }
  // Views `size_bytes` of raw memory.
  static BasicMemoryView Host(Address data, std::size_t size_bytes,
                              std::vector<std::int64_t> strides_bytes = {},
                              std::size_t origin_bytes = 0) {
    return {.data = static_cast<Byte*>(data),
            .size_bytes = size_bytes,
            .strides_bytes = std::move(strides_bytes),
            .origin_bytes = origin_bytes};
  }
  // Like Host, for memory of a CUDA device. The host takes the address of the elements but never
  // reads the elements.
  template <ElementRange Range>
    requires(std::is_const_v<Byte> || MutableElementRange<Range>)
  static BasicMemoryView Cuda(Range&& elements, int device, void* stream,
                              std::vector<std::int64_t> strides_bytes = {},
                              std::size_t origin_bytes = 0) {
    BasicMemoryView view =
        Host(std::forward<Range>(elements), std::move(strides_bytes), origin_bytes);
    return std::move(view).OnDevice(device, stream);
  }
  static BasicMemoryView Cuda(Address data, std::size_t size_bytes, int device, void* stream,
                              std::vector<std::int64_t> strides_bytes = {},
                              std::size_t origin_bytes = 0) {
    BasicMemoryView view = Host(data, size_bytes, std::move(strides_bytes), origin_bytes);
    return std::move(view).OnDevice(device, stream);
  }
  // A destination without memory, for plans that are only inspected. Plan treats this destination
  // as memory of the right size; Read and Load refuse it.
  static BasicMemoryView PlanOnly()
    requires(!std::is_const_v<Byte>)
  {
    return {.is_plan_only = true};
  }

  // Returns a view of the same memory with a different dtype, for example for bf16 values that are
  // stored as std::uint16_t.
  BasicMemoryView WithDType(DType other) && {
    dtype = other;
    return std::move(*this);
  }
  BasicMemoryView WithDType(DType other) const& { return BasicMemoryView(*this).WithDType(other); }

  bool is_host() const { return device == kHostDevice; }
  bool is_dense() const { return strides_bytes.empty(); }

  // A destination converts to a source, because writable memory can also be read.
  operator BasicMemoryView<const std::byte>() const  // NOLINT: as span<T> to span<const T>
    requires(!std::is_const_v<Byte>)
  {
    return {.data = data,
            .size_bytes = size_bytes,
            .dtype = dtype,
            .strides_bytes = strides_bytes,
            .origin_bytes = origin_bytes,
            .device = device,
            .stream = stream,
            .is_plan_only = is_plan_only};
  }

  friend bool operator==(const BasicMemoryView&, const BasicMemoryView&) = default;

 private:
  BasicMemoryView OnDevice(int number, void* its_stream) && {
    device = number;
    stream = its_stream;
    return std::move(*this);
  }
};

using MemoryView = BasicMemoryView<const std::byte>;   // a source of a save
using MutableMemoryView = BasicMemoryView<std::byte>;  // a destination of a load

// A DLPack dtype. The fields have the same values as in DLDataType; these values are stable.
struct DlpackDType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;  // bits of one lane
  std::uint16_t lanes = 0;
  bool operator==(const DlpackDType&) const = default;
};

// Returns the DLPack dtype for a dtype; every registered dtype has one. Returns nullopt if `dtype`
// is not registered.
SEALPOINT_EXPORT std::optional<DlpackDType> DlpackOf(DType dtype);
// Returns the dtype for a DLPack dtype; nullopt if Sealpoint's format has no such dtype.
SEALPOINT_EXPORT std::optional<DType> DTypeOfDlpack(DlpackDType dtype);

// Values of DLDeviceType, which are stable.
inline constexpr std::int32_t kDlpackCpu = 1;
inline constexpr std::int32_t kDlpackCuda = 2;
inline constexpr std::int32_t kDlpackCudaHost = 3;
inline constexpr std::int32_t kDlpackCudaManaged = 13;

// Returns the address of the first byte of an array. Element 0 of the array is at data +
// byte_offset, and the array covers the bytes [lowest, end) relative to element 0. Returns nullopt
// if any of these addresses is invalid.
inline std::optional<std::byte*> DlpackBegin(void* data, std::uint64_t byte_offset,
                                             std::int64_t lowest, std::int64_t end) {
  std::int64_t first = 0;
  std::int64_t begin = 0;
  std::int64_t past = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(data), byte_offset, &first) ||
      __builtin_add_overflow(first, lowest, &begin) || __builtin_add_overflow(first, end, &past) ||
      begin < 0) {
    return std::nullopt;
  }
  return static_cast<std::byte*>(data) +
         (begin - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data)));
}

}  // namespace sealpoint

#endif  // SEALPOINT_MEMORY_VIEW_H_
