// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_DELIVERY_H_
#define SEALPOINT_READERS_LOAD_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "readers/load/chunk_reader.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

struct DeviceBytes {
  std::uint64_t verified = 0;       // in device memory
  std::uint64_t read_directly = 0;  // of these: by DirectFiles
};

// How the ranges of a plan come to their destinations, on several threads. A range whose bytes are
// those of a destination is read there (PlanRange::in_place); what happens to all others was
// decided by the destinations when the plan was made: they are copied by the host, or by devices.
class Delivery {
 public:
  // The one for the plan. Borrows `source`.
  static Result<std::unique_ptr<Delivery>> Open(const PlanSource& source,
                                                const ReadOptions& options,
                                                std::uint64_t memory_budget_bytes);
  // When this returns nothing that was queued on a device runs any more.
  virtual ~Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  virtual int thread_count() const = 0;
  // Fetches and verifies a range, and copies all that it holds. A thread below thread_count()
  // makes one call at a time.
  Status Deliver(std::size_t thread, const PlanRange& range);
  // Waits until all has arrived.
  virtual Result<DeviceBytes> Finish() = 0;

 protected:
  // `isolate`: see ReadOptions.
  explicit Delivery(bool isolate) : isolates_(isolate) {}

 private:
  virtual ChunkReader& ReaderOf(std::size_t thread) = 0;
  virtual Status DeliverCopies(std::size_t thread, const PlanRange& range) = 0;

  const bool isolates_;
};

// How many of `threads` the budget allows, at least one: each needs a range, and twice the largest
// decoded chunk, since undoing the byte split takes a second buffer.
int AffordableThreads(const ReadPlanData& plan, int threads, std::uint64_t memory_budget_bytes);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_DELIVERY_H_
