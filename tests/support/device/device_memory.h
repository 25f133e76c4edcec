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

// Memory of a stand-in device: mapped twice. `address` is what a device address is to the host, a
// number: a read or write through it crashes. `contents` is what the device sees, and the test.
class DeviceMemory {
 public:
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* address() const { return address_; }
  MutableByteSpan contents() const { return contents_; }

 private:
  friend class DeviceAddresses;
  DeviceMemory(std::shared_ptr<DeviceAddresses> owner, std::byte* address, MutableByteSpan contents)
      : owner_(std::move(owner)), address_(address), contents_(contents) {}

  std::shared_ptr<DeviceAddresses> owner_;
  std::byte* address_;
  MutableByteSpan contents_;
};

// Which addresses are memory of which device. Thread safety: all functions.
class DeviceAddresses : public std::enable_shared_from_this<DeviceAddresses> {
 public:
  // Aborts where the system has no memory. The contents are zero.
  std::unique_ptr<DeviceMemory> Allocate(int device, std::uint64_t size_bytes);
  // Where the contents of [address, address + size) are; nothing where that is no memory of the
  // device, or not all of it.
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
