// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/slabs.h"

#include <algorithm>

namespace sealpoint::internal::interop {

std::vector<ExtentPart> Slabs::Next() {
  std::vector<ExtentPart> pieces;
  std::uint64_t size = 0;
  for (; at_ < extents_.size(); ++at_) {
    const Extent& extent = extents_[at_];
    if (extent.size == 0) continue;
    if (extent.size > buffer_size_) {
      if (!pieces.empty()) break;
      const std::uint64_t step = buffer_size_ / extent.unit * extent.unit;
      const std::uint64_t end = begin_ + std::min(step, extent.size - begin_);
      pieces.push_back({at_, begin_, end});
      const bool is_last = end == extent.size;
      begin_ = is_last ? 0 : end;
      at_ += is_last ? 1 : 0;
      break;
    }
    if (size + extent.size > buffer_size_) break;
    pieces.push_back({at_, 0, extent.size});
    size += extent.size;
  }
  return pieces;
}

}  // namespace sealpoint::internal::interop
