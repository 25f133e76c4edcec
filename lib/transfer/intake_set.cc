// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/intake_set.h"

#include "lib/base/macros.h"

namespace sealpoint::internal::transfer {

IntakeSet::IntakeSet(const IntakeContext& context, StreamTarget target)
    : copy_(context),
      borrow_(context),
      snapshot_(context),
      device_(context),
      encode_(context, device_),
      large_(target == StreamTarget::kNone           ? static_cast<Intake&>(snapshot_)
             : target == StreamTarget::kBufferedFile ? static_cast<Intake&>(borrow_)
                                                     : static_cast<Intake&>(copy_)) {}

Intake& IntakeSet::Choose(const SourceReader& source, const ShardEncoding& encoding) {
  if (encoding.codec != Codec::kNone || encoding.base != nullptr) return encode_;
  if (!source.view().is_host()) return device_;
  const bool is_large = encoding.raw_size >= kBorrowedSizeMin;
  return source.is_dense() && is_large ? large_ : copy_;
}

// All of them, also after an error: the callers' memory may go.
Status IntakeSet::Release() {
  Status first;
  for (Intake* const intake : late_) {
    Status status = intake->Release();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

void IntakeSet::BeforeWrites() {
  for (Intake* const intake : late_) intake->BeforeWrites();
}

Result<bool> IntakeSet::CompleteOldest() {
  for (Intake* const intake : late_) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool has_completed, intake->CompleteOldest());
    if (has_completed) return true;
  }
  return false;
}

Status IntakeSet::Complete() {
  while (true) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool has_completed, CompleteOldest());
    if (!has_completed) return Release();
  }
}

}  // namespace sealpoint::internal::transfer
