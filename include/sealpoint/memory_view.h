// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MEMORY_VIEW_H_
#define SEALPOINT_MEMORY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sealpoint {

// Host memory that holds, or is to receive, the elements of a region. Borrowed: the caller keeps
// it alive and unchanged for as long as the call that takes it says.
//
// Without strides the elements of the region lie densely in row-major order (of a run: in run
// order). With strides, one per dimension in bytes, element (i0, i1, …) of the region's *box* lies
// at data + i0*strides[0] + i1*strides[1] + …, whatever part of the box the run is. Strides may be
// negative; those of a destination are for plain boxes only and must not make two elements share a
// byte. Any alignment is fine.
template <typename Byte>
struct BasicMemoryView {
  Byte* data = nullptr;
  std::vector<std::int64_t> strides_bytes{};

  friend bool operator==(const BasicMemoryView&, const BasicMemoryView&) = default;
};

using ConstMemoryView = BasicMemoryView<const std::byte>;  // a source
using MutableMemoryView = BasicMemoryView<std::byte>;      // a destination

struct MemoryView {
  // A source of a save.
  static ConstMemoryView Host(const void* data, std::vector<std::int64_t> strides_bytes = {}) {
    return {static_cast<const std::byte*>(data), std::move(strides_bytes)};
  }
  // A destination of a load.
  static MutableMemoryView MutableHost(void* data, std::vector<std::int64_t> strides_bytes = {}) {
    return {static_cast<std::byte*>(data), std::move(strides_bytes)};
  }
};

}  // namespace sealpoint

#endif  // SEALPOINT_MEMORY_VIEW_H_
