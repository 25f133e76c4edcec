// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DEVICE_DEVICE_MEMORY_H_
#define SEALPOINT_TESTS_SUPPORT_DEVICE_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "sealpoint/bytes.h"

namespace sealpoint::testing {

class DeviceAddresses;

// Memory of a stand-in device, mapped twice. `address` stands for a device address: the host cannot
// access it, so that a read or write through it crashes. `contents` is what the device and the test
// see.
class DeviceMemory {
 public:
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* address() const { return address_; }
  // The addresses, as memory views take them.
  MutableByteSpan addresses() const { return {address_, contents_.size()}; }
  MutableByteSpan contents() const { return contents_; }

 private:
  friend class DeviceAddresses;
  DeviceMemory(std::shared_ptr<DeviceAddresses> owner, std::byte* address, MutableByteSpan contents)
      : owner_(std::move(owner)), address_(address), contents_(contents) {}

  std::shared_ptr<DeviceAddresses> owner_;
  std::byte* address_;
  MutableByteSpan contents_;
};

// Maps addresses to the memory of devices. Thread safety: all functions.
class DeviceAddresses : public std::enable_shared_from_this<DeviceAddresses> {
 public:
  // Aborts if the system has no memory. The contents are zero.
  std::unique_ptr<DeviceMemory> Allocate(int device, std::uint64_t size_bytes);
  // The contents of [address, address + size); null unless all of it is memory of the device.
  std::optional<MutableByteSpan> Find(int device, const std::byte* address,
                                      std::uint64_t size_bytes) const;

 private:
  friend class DeviceMemory;
  struct Range {
    int device = 0;
    MutableByteSpan contents{};
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Range> ranges_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DEVICE_DEVICE_MEMORY_H_
