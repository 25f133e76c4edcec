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

// What the deliveries of one plan work with. All of it outlives them.
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

// The deliveries of one load, one for each thread, with all staging memory in one lease. The way is
// chosen by the plan: HostDelivery, if all destinations are in host memory; else DeviceDelivery, or
// DirectDelivery if that is asked for and possible.
class DeliverySet {
 public:
  // Before anything is read, also the queues of all threads are ordered behind the callers'
  // streams: a destination may be in use by work that is on its stream now. Errors: Device;
  // Unsupported (a device that cannot verify, if that is asked for).
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

// For chunks that other ranks send: their bytes are gone after Begin. `buffer_max_bytes` bounds a
// staging buffer. Used by one thread.
Result<std::unique_ptr<Delivery>> OpenReceived(const DeliveryContext& context,
                                               std::uint64_t buffer_max_bytes);

// How many of `threads` the budget allows, at least one: each needs a range, and twice the largest
// decoded chunk, since undoing the byte split takes a second buffer.
int AffordableThreads(const DeliveryPlan& plan, int threads, std::uint64_t memory_budget_bytes);

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DELIVERY_SET_H_
