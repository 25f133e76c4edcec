// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MEMORY_VIEW_H_
#define SEALPOINT_MEMORY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/export.h"

namespace sealpoint {

// The device number of host memory.
inline constexpr int kHostDevice = -1;

// An lvalue container, array or span of elements that have a dtype (kDTypeOf), or of std::byte for
// raw bytes of any dtype. Excludes temporary containers, because the view would outlive them.
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

// Host or CUDA device memory that holds or receives the elements of a region. Borrowed: the caller
// keeps it alive, and a source unchanged, for as long as the called function documents. A value
// type; the functions below never fail.
//
// A source that is changed concurrently, by a thread or by work on a device, cannot corrupt a
// checkpoint. Each byte is copied first, and digest, codec and storage use only the copy, so
// digests always match the stored data. However, the stored tensor may mix old and new values; this
// cannot be detected.
//
// Before any byte moves, these conditions are checked; a violation is InvalidArgument with the
// tensor's name. The dtype of the view, if set, is that of the tensor (or the target dtype of a
// conversion). A dense view has exactly the size of the region. Each element of a strided view is
// within its bytes, and elements of a strided destination do not overlap.
//
// Without strides, the elements of the region are dense in row-major order from `data` on; those of
// a run are in run order. With strides (one per dimension, in bytes), element (i0, i1, …) of the
// region's *box* is at data + origin_bytes + i0*strides[0] + i1*strides[1] + …, even if the region
// is only a run of the box. Strides may be negative. Strided destinations are for plain boxes only,
// and their elements must not overlap: in ascending order of absolute value, each stride of an
// extent above 1 must be at least the span of the elements with smaller strides. Any alignment is
// allowed.
//
// Device memory: `data` is an address of `device` and is never dereferenced by the host. Memory and
// stream belong to the device's primary context, as for everything made by the CUDA runtime API.
// - Synchronization: work queued on `stream` before the call precedes every access to the memory.
//   The call does not wait for anything else. If other streams write the memory (or read it, for a
//   destination), first make `stream` wait for their events, or synchronize.
// - Completion: when the call that takes the bytes has returned, a source may be overwritten and a
//   destination holds its data, on any stream. No work of the call is left on `stream`.
// - Ownership: memory and stream belong to the caller and must exist until then. The library queues
//   only event records on `stream`; copies run on its own streams. The stream must not be capturing
//   a graph.
template <typename Byte>
struct BasicMemoryView {
  using Address = std::conditional_t<std::is_const_v<Byte>, const void*, void*>;

  Byte* data = nullptr;
  // Size of the memory from `data` on, including gaps between strided elements.
  std::size_t size_bytes = 0;
  // Dtype of the elements; kNone: raw bytes, accepted for any dtype.
  DType dtype = DType::kNone;
  std::vector<std::int64_t> strides_bytes{};  // empty: dense
  // Offset of element (0, 0, …) of the box from `data`; nonzero if a stride is negative. Ignored
  // for a dense view.
  std::size_t origin_bytes = 0;
  int device = kHostDevice;  // CUDA device number, from 0
  // The caller's cudaStream_t or CUstream; null is the (legacy) default stream of the device's
  // primary context. Ignored for host memory.
  void* stream = nullptr;
  // See PlanOnly.
  bool is_plan_only = false;

  // Views the elements of a container, an array or a span: `Host(weights)`. The view has their
  // dtype; none for std::byte.
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
  // The same for a CUDA device. The host takes the address of the span's elements but never reads
  // them.
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
  // A destination without memory, for plans that are only inspected: Plan treats it as memory of
  // the right size, Read and Load refuse it.
  static BasicMemoryView PlanOnly()
    requires(!std::is_const_v<Byte>)
  {
    return {.is_plan_only = true};
  }

  // The same memory with another dtype, for example bf16 stored as std::uint16_t.
  BasicMemoryView WithDType(DType other) && {
    dtype = other;
    return std::move(*this);
  }
  BasicMemoryView WithDType(DType other) const& { return BasicMemoryView(*this).WithDType(other); }

  bool is_host() const { return device == kHostDevice; }
  bool is_dense() const { return strides_bytes.empty(); }

  // Writable memory can be read.
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

}  // namespace sealpoint

#endif  // SEALPOINT_MEMORY_VIEW_H_
