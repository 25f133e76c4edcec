// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_HOST_DELIVERY_H_
#define SEALPOINT_LIB_TRANSFER_HOST_DELIVERY_H_

#include <cstddef>
#include <cstdint>

#include "lib/layout/box_copy.h"
#include "lib/transfer/delivery.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// Converts the elements of a planned copy, at once or in parts. Parts must be passed in row-major
// order: a failing element is identified by the number of elements converted before it.
class ConvertedCopy {
 public:
  ConvertedCopy(const DeliveryPlan& plan, const PlanChunk& chunk, const PlanCopy& copy,
                ByteSpan raw)
      : plan_(plan), chunk_(chunk), part_(plan.converted_parts[copy.converted_part()]), raw_(raw) {}

  // Errors: Mismatch, with the offset of the element in the file if the chunk has no codec.
  Status Run(const layout::StridedCopy& copy, std::byte* target);

 private:
  const DeliveryPlan& plan_;
  const PlanChunk& chunk_;
  const ConvertedPart& part_;
  const ByteSpan raw_;
  std::uint64_t done_ = 0;  // elements
};

// Copies a chunk's raw bytes to host memory, each copy in its way. Precondition: no copy is
// CopyWay::kToDevice. Errors: Mismatch if an element has no counterpart in the dtype; later copies
// are left out then.
class HostDelivery final : public Delivery {
 public:
  // `isolates`: destinations get verified bytes only.
  HostDelivery(const DeliveryPlan& plan, bool isolates) : plan_(plan), isolates_(isolates) {}

  bool reads_in_place() const override { return !isolates_; }
  Result<FetchTarget> Prepare(const PlanRange&, RangeFetcher&) override { return FetchTarget(); }
  Status Begin(const PlanChunk& chunk, ByteSpan raw) override;

  static Status Copy(const DeliveryPlan& plan, const PlanChunk& chunk, const PlanCopy& copy,
                     ByteSpan raw);

 private:
  const DeliveryPlan& plan_;
  const bool isolates_;
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_HOST_DELIVERY_H_
