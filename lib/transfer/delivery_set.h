// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_DELIVERY_SET_H_
#define SEALPOINT_LIB_TRANSFER_DELIVERY_SET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/device/device_runtime.h"
#include "lib/device/staging_pool.h"
#include "lib/transfer/delivery.h"
#include "lib/transfer/direct_delivery.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// Objects used by the deliveries of one plan. They must outlive the deliveries.
struct DeliveryContext {
  const DeliveryPlan& plan;
  device::StagingPool& pool;
  std::shared_ptr<device::DeviceRuntime> devices;  // null if the plan is for the host alone
  DirectFiles::OpenBlob open_direct{};
};

// See ReadOptions.
struct DeliveryOptions {
  int threads = 1;
  std::uint64_t memory_budget_bytes = 0;
  bool isolates = false;
  bool verifies_on_device = false;
  bool reads_directly = false;
};

// The deliveries of one load, one for each thread, with all staging memory in one lease. The plan
// determines the method: HostDelivery if all destinations are in host memory; otherwise
// DeviceDelivery, or DirectDelivery if requested and possible.
class DeliverySet {
 public:
  // Before anything is read, the queues of all threads are also ordered after the callers' streams,
  // because work on a stream may still use its destination. Errors: Device; Unsupported
  // (verification on the device was requested but is not possible).
  static Result<std::unique_ptr<DeliverySet>> Open(const DeliveryContext& context,
                                                   const DeliveryOptions& options);

  int thread_count() const { return static_cast<int>(deliveries_.size()); }
  Delivery& Of(int thread) { return *deliveries_[static_cast<std::size_t>(thread)]; }
  // Waits until all has arrived.
  Result<DeviceBytes> Complete();

 private:
  Status OpenQueued(const DeliveryContext& context, const DeliveryOptions& options);

  device::StagingBuffer memory_;
  std::optional<DirectFiles> direct_files_;
  std::vector<std::unique_ptr<Delivery>> deliveries_;  // destroyed first: they use the others
};

// For chunks sent by other ranks: their bytes are invalid after Begin. `buffer_max_bytes` limits a
// staging buffer. Used by one thread.
Result<std::unique_ptr<Delivery>> OpenReceived(const DeliveryContext& context,
                                               std::uint64_t buffer_max_bytes);

// Number of `threads` that the budget allows, at least one. Each needs a range, and twice the
// largest decoded chunk, because undoing the byte split needs a second buffer.
int AffordableThreads(const DeliveryPlan& plan, int threads, std::uint64_t memory_budget_bytes);

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DELIVERY_SET_H_
