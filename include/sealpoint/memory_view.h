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

// A lvalue container, array or span of elements that have a dtype (kDTypeOf), or of std::byte: raw
// bytes of any dtype. A temporary container is none, because the view would outlive it.
template <typename Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                       std::ranges::borrowed_range<Range> &&
                       (std::is_same_v<std::ranges::range_value_t<Range>, std::byte> ||
                        kDTypeOf<std::ranges::range_value_t<Range>> != DType::kNone);

// The same, to be written to.
template <typename Range>
concept MutableElementRange =
    ElementRange<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

// Memory of the host or of a CUDA device that holds, or is to receive, the elements of a region.
// Borrowed: the caller keeps it alive, and a source unchanged, for as long as the call that takes
// it says. A value type; the functions below never fail.
//
// A source that another thread changes all the same cannot make a checkpoint corrupt. Each byte is
// read into a copy of the library's, and digest, codec and storage see that copy alone: what is
// stored has the digests that are stored with it. It may mix what the source held at different
// moments of the call, which nobody can tell later. Work on a device that changes it counts as such
// a thread.
//
// What is checked before a byte moves, always as InvalidArgument with the tensor's name: the dtype
// of a view that has one is that of the tensor (or, for a destination that is converted, the one
// that it is converted to); a dense view has exactly the bytes of the region; each element of a
// strided one is within its bytes, and elements of a strided destination do not overlap.
//
// Without strides the elements of the region are dense in row-major order (those of a run in run
// order), from `data` on. With strides, one per dimension in bytes, element (i0, i1, …) of the
// region's *box* is at data + origin_bytes + i0*strides[0] + i1*strides[1] + …, whatever part of
// the box the run is. Strides may be negative; those of a destination are for plain boxes only and
// must not make two elements share a byte: taken from the least on, each stride of an extent above
// one steps, either way, over all that the elements of smaller strides span. Any alignment is fine.
//
// Device memory: `data` is an address of `device`, never dereferenced by the host. Memory and
// stream belong to the device's primary context, as all that the CUDA runtime API makes.
//   What must be complete. Work that was queued on `stream` before the call comes before every
//   access to the memory; the call itself waits for nothing on the host. Nothing else is waited
//   for: let `stream` wait for an event of each other stream that writes the memory (or reads it,
//   if it is a destination), or synchronise, first.
//   When the memory may be used again. When the call that takes the bytes has returned, on any
//   stream: a source may be overwritten, a destination holds the bytes that were read. Nothing of
//   the call is then left on `stream`.
//   Ownership. Memory and stream stay the caller's and must exist until then. Nothing is ever
//   queued on `stream` but an event record; copies run on streams of the library's own. The stream
//   must not be being captured into a graph.
template <typename Byte>
struct BasicMemoryView {
  using Address = std::conditional_t<std::is_const_v<Byte>, const void*, void*>;

  Byte* data = nullptr;
  // Size of the memory from `data` on, with all gaps between strided elements.
  std::size_t size_bytes = 0;
  // The dtype of the elements; kNone: raw bytes, which pass for any dtype.
  DType dtype = DType::kNone;
  std::vector<std::int64_t> strides_bytes{};  // empty: dense
  // Offset of element (0, 0, …) of the box from `data`: other than 0 if a stride is negative.
  // Ignored for a dense view.
  std::size_t origin_bytes = 0;
  int device = kHostDevice;  // CUDA's number of the device, from 0
  // The caller's cudaStream_t or CUstream; null is the (legacy) default stream of the device's
  // primary context. Ignored for host memory.
  void* stream = nullptr;
  // See MutableMemoryView's PlanOnly.
  bool is_plan_only = false;

  // Elements of a container, an array or a span: `Host(weights)`. The view has their dtype, but for
  // std::byte none.
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
  // Raw memory of `size_bytes`.
  static BasicMemoryView Host(Address data, std::size_t size_bytes,
                              std::vector<std::int64_t> strides_bytes = {},
                              std::size_t origin_bytes = 0) {
    return {.data = static_cast<Byte*>(data),
            .size_bytes = size_bytes,
            .strides_bytes = std::move(strides_bytes),
            .origin_bytes = origin_bytes};
  }
  // The same of a CUDA device. The elements of a span are addressed, never read, by the host.
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
  // A destination without memory, for a plan that is made to be looked at: Plan takes it for memory
  // of the right size, Read and Load refuse it.
  static BasicMemoryView PlanOnly()
    requires(!std::is_const_v<Byte>)
  {
    return {.is_plan_only = true};
  }

  // The same memory as elements of another dtype, such as bf16 in std::uint16_t.
  BasicMemoryView WithDType(DType other) && {
    dtype = other;
    return std::move(*this);
  }
  BasicMemoryView WithDType(DType other) const& { return BasicMemoryView(*this).WithDType(other); }

  bool is_host() const { return device == kHostDevice; }
  bool is_dense() const { return strides_bytes.empty(); }

  // What may be written to may be read.
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
