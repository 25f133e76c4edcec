// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_DELIVERY_H_
#define SEALPOINT_LIB_TRANSFER_DELIVERY_H_

#include <cstdint>

#include "lib/transfer/delivery_plan.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

class Delivery;

// What fetches and verifies the chunks of ranges: a reader.
class RangeFetcher {
 public:
  // Fetches a range and hands each of its chunks to the delivery, verified and in order.
  virtual Status Fetch(const PlanRange& range, Delivery& delivery) = 0;
  // The error with file, offset and tensor of the chunk; what an inner frame named stays.
  virtual Status At(const PlanChunk& chunk, Status error) const = 0;

 protected:
  ~RangeFetcher() = default;
};

// Where the bytes of a range are to be fetched to.
struct FetchTarget {
  bool is_fetched = false;  // done by the delivery: the fetcher skips the range
  // Page-aligned, of at least DeliveryPlan::range_pages_max; what is in it stays as it is after
  // Begin. Empty: memory of the fetcher, which it uses again.
  MutableByteSpan memory{};
};

struct DeviceBytes {
  std::uint64_t verified = 0;       // in device memory
  std::uint64_t read_directly = 0;  // of these: by DirectDelivery
};

// A method of delivering verified chunks to their destinations. The calls for each range are:
// Prepare, Begin for each of its chunks, EndRange; or only InPlace, if the fetcher has read and
// verified the range in place. After all ranges: Complete. Bytes are at their destination
//
//   in place                      before InPlace
//   host (copy, scatter, convert) after Begin
//   send                          after Begin; those of this rank when its local delivery has them
//   to device, direct             after Complete
//   none                          never
//
// After an error only destruction is allowed; it waits until no destination or staging buffer is in
// use. Thread safety: one thread at a time; for HostDelivery, SendDelivery and NoDelivery: all
// functions, for different chunks.
class Delivery {
 public:
  virtual ~Delivery() = default;

  // True if a range with PlanRange::in_place may be read to its destination directly.
  virtual bool reads_in_place() const { return false; }
  // `fetcher` is used until Complete.
  virtual Result<FetchTarget> Prepare(const PlanRange& range, RangeFetcher& fetcher) = 0;
  // The raw bytes of a chunk, borrowed for the call unless they are in FetchTarget::memory.
  virtual Status Begin(const PlanChunk& chunk, ByteSpan raw) = 0;
  // The range is at its destination.
  virtual void InPlace(const PlanRange&) {}
  virtual Status EndRange() { return {}; }
  // Waits until all has arrived, in order, and gives staging memory back.
  virtual Status Complete() { return {}; }
  // Bytes completed on devices so far.
  virtual DeviceBytes device_bytes() const { return {}; }
};

// Chunks that go nowhere: they are verified.
class NoDelivery final : public Delivery {
 public:
  // `memory`: as FetchTarget says.
  explicit NoDelivery(MutableByteSpan memory) : memory_(memory) {}

  Result<FetchTarget> Prepare(const PlanRange&, RangeFetcher&) override {
    return FetchTarget{.memory = memory_};
  }
  Status Begin(const PlanChunk&, ByteSpan) override { return {}; }

 private:
  const MutableByteSpan memory_;
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DELIVERY_H_
