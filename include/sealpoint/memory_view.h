// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MEMORY_VIEW_H_
#define SEALPOINT_MEMORY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sealpoint/export.h"

namespace sealpoint {

// The device number of host memory.
inline constexpr int kHostDevice = -1;

// Memory of the host or of a CUDA device that holds, or is to receive, the elements of a region.
// Borrowed: the caller keeps it alive, and a source unchanged, for as long as the call that takes
// it says.
//
// Without strides the elements of the region lie densely in row-major order (of a run: in run
// order). With strides, one per dimension in bytes, element (i0, i1, …) of the region's *box* lies
// at data + i0*strides[0] + i1*strides[1] + …, whatever part of the box the run is. Strides may be
// negative; those of a destination are for plain boxes only and must not make two elements share a
// byte. Any alignment is fine.
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
  Byte* data = nullptr;
  std::vector<std::int64_t> strides_bytes{};
  int device = kHostDevice;  // CUDA's number of the device, from 0
  // The caller's cudaStream_t or CUstream; null is the (legacy) default stream of the device's
  // primary context. Without meaning for host memory.
  void* stream = nullptr;

  bool is_host() const { return device == kHostDevice; }

  friend bool operator==(const BasicMemoryView&, const BasicMemoryView&) = default;
};

using ConstMemoryView = BasicMemoryView<const std::byte>;  // a source
using MutableMemoryView = BasicMemoryView<std::byte>;      // a destination

struct MemoryView {
  // A source of a save.
  static ConstMemoryView Host(const void* data, std::vector<std::int64_t> strides_bytes = {}) {
    return {static_cast<const std::byte*>(data), std::move(strides_bytes)};
  }
  static ConstMemoryView Cuda(const void* data, int device, void* stream,
                              std::vector<std::int64_t> strides_bytes = {}) {
    return {static_cast<const std::byte*>(data), std::move(strides_bytes), device, stream};
  }
  // A destination of a load.
  static MutableMemoryView MutableHost(void* data, std::vector<std::int64_t> strides_bytes = {}) {
    return {static_cast<std::byte*>(data), std::move(strides_bytes)};
  }
  static MutableMemoryView MutableCuda(void* data, int device, void* stream,
                                       std::vector<std::int64_t> strides_bytes = {}) {
    return {static_cast<std::byte*>(data), std::move(strides_bytes), device, stream};
  }
};

}  // namespace sealpoint

#endif  // SEALPOINT_MEMORY_VIEW_H_
