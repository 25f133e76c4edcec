// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DEVICE_USE_DEVICES_H_
#define SEALPOINT_TESTS_SUPPORT_DEVICE_USE_DEVICES_H_

#include <memory>
#include <utility>

#include "readers/load/checkpoint_impl.h"

namespace sealpoint::testing {

// Lets a checkpoint that was just opened, also by a collective reader, find a stand-in's devices.
inline void UseDevices(const Checkpoint& checkpoint,
                       std::shared_ptr<internal::device::DeviceRuntime> devices) {
  auto& opened = const_cast<Checkpoint&>(checkpoint);
  static_cast<internal::load::CheckpointImpl&>(opened).UseDevices(std::move(devices));
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DEVICE_USE_DEVICES_H_
