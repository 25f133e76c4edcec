// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_COMPUTE_FINGERPRINT_H_
#define SEALPOINT_LIB_TRANSFER_COMPUTE_FINGERPRINT_H_

#include <cstdint>
#include <memory>

#include "lib/device/device_runtime.h"
#include "lib/device/queue_pool.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::transfer {

// ComputeFingerprint with the devices of `devices`. `idle_queues` gives and takes their queues;
// null: a queue for this call.
Result<Fingerprint> ComputeFingerprint(const Shape& shape, std::uint32_t element_size,
                                       const Region& region, const MemoryView& memory,
                                       const std::shared_ptr<device::DeviceRuntime>& devices,
                                       device::QueuePool* idle_queues);

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_COMPUTE_FINGERPRINT_H_
