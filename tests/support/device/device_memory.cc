// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/macros.h"

namespace sealpoint::testing {

DeviceMemory::~DeviceMemory() {
  {
    const std::lock_guard lock(owner_->mutex_);
    owner_->ranges_.erase(address_);
  }
  munmap(address_, std::max<std::size_t>(contents_.size(), 1));
  munmap(contents_.data(), std::max<std::size_t>(contents_.size(), 1));
}

std::unique_ptr<DeviceMemory> DeviceAddresses::Allocate(int device, std::uint64_t size_bytes) {
  const std::size_t mapped = std::max<std::size_t>(size_bytes, 1);
  const int fd = memfd_create("device memory", MFD_CLOEXEC);
  SEALPOINT_CHECK(fd >= 0 && ftruncate(fd, static_cast<off_t>(mapped)) == 0);
  void* const address = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, fd, 0);
  void* const alias = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  SEALPOINT_CHECK(address != MAP_FAILED && alias != MAP_FAILED);
  close(fd);
  const MutableByteSpan contents(static_cast<std::byte*>(alias), size_bytes);
  auto* const first = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  ranges_[first] = {device, contents};
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(shared_from_this(), first, contents));
}

std::optional<MutableByteSpan> DeviceAddresses::Find(int device, const std::byte* address,
                                                     std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return std::nullopt;
  --range;
  const MutableByteSpan contents = range->second.contents;
  const auto offset = static_cast<std::uint64_t>(address - range->first);
  if (range->second.device != device || offset > contents.size()) return std::nullopt;
  if (size_bytes > contents.size() - offset) return std::nullopt;
  return contents.subspan(offset, size_bytes);
}

}  // namespace sealpoint::testing
