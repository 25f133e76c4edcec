// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/part_buffers.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lib/base/errors.h"

namespace sealpoint::internal::storage {

PartBuffers::PartBuffers(std::uint64_t part_size_bytes, std::uint64_t memory_bytes)
    : part_size_(part_size_bytes),
      count_max_(std::max<std::uint64_t>(2, memory_bytes / part_size_bytes)) {}

bool PartBuffers::TryCharge(PartBudget* memory) {
  if (memory != nullptr) return memory->TryTake(part_size_);
  if (charged_count_ == count_max_) return false;
  ++charged_count_;
  return true;
}

void PartBuffers::Discharge(PartBudget* memory) {
  if (memory != nullptr) return memory->Give(part_size_);
  --charged_count_;
}

Result<PartBuffer> PartBuffers::Take() {
  PartBuffer buffer;
  if (!unused_.empty()) {
    buffer = std::move(unused_.back());
    unused_.pop_back();
  } else {
    buffer.reset(new (std::nothrow) std::byte[part_size_]);
    if (!buffer) {
      return MakeError(Code::kNoSpace, "out of memory for a part of ", part_size_, " bytes");
    }
  }
  ++taken_count_;
  return buffer;
}

void PartBuffers::Give(PartBuffer buffer, bool may_keep) {
  --taken_count_;
  // While nothing is uploaded no memory is kept but for the next upload to begin with.
  if (taken_count_ == 0) unused_.clear();
  if (may_keep && unused_.size() + taken_count_ < count_max_) unused_.push_back(std::move(buffer));
}

}  // namespace sealpoint::internal::storage
