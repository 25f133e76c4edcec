// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DEVICE_HOST_DEVICE_FILES_H_
#define SEALPOINT_TESTS_SUPPORT_DEVICE_HOST_DEVICE_FILES_H_

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/device_runtime.h"
#include "tests/support/device/device_memory.h"

namespace sealpoint::testing {

// Files that stand-in devices read by themselves. What real devices refuse, since nobody means it,
// is an abort here: two files of one descriptor, a descriptor that is closed before its file.
// Thread safety: all functions.
class HostDeviceFiles : public std::enable_shared_from_this<HostDeviceFiles> {
 public:
  explicit HostDeviceFiles(std::shared_ptr<DeviceAddresses> addresses)
      : addresses_(std::move(addresses)) {}

  // The `nth` read from now, 1 the next, gives this error after half of its bytes.
  void FailRead(std::uint64_t nth, Status error) {
    const std::lock_guard lock(mutex_);
    fail_ = nth;
    error_ = std::move(error);
  }
  // One bit of what it brings arrives flipped.
  void FlipBitInRead(std::uint64_t nth) {
    const std::lock_guard lock(mutex_);
    flip_ = nth;
  }
  void Refuse() {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
  }

  std::uint64_t reads() const { return Locked(reads_); }
  std::uint64_t opened() const { return Locked(opened_); }      // so far
  std::uint64_t open_max() const { return Locked(open_max_); }  // at a time
  std::uint64_t open_now() const {
    const std::lock_guard lock(mutex_);
    return descriptors_.size();
  }

  Result<std::unique_ptr<internal::device::DeviceFile>> Open(int descriptor) {
    const std::lock_guard lock(mutex_);
    if (refuses_) return internal::MakeError(Code::kUnsupported, "not this file");
    SEALPOINT_CHECK(descriptors_.insert(descriptor).second);
    ++opened_;
    open_max_ = std::max<std::uint64_t>(open_max_, descriptors_.size());
    return std::unique_ptr<internal::device::DeviceFile>(
        std::make_unique<File>(shared_from_this(), descriptor));
  }

 private:
  class File final : public internal::device::DeviceFile {
   public:
    File(std::shared_ptr<HostDeviceFiles> owner, int descriptor)
        : owner_(std::move(owner)), descriptor_(descriptor) {}
    ~File() override {
      const std::lock_guard lock(owner_->mutex_);
      SEALPOINT_CHECK(fcntl(descriptor_, F_GETFD) >= 0);
      owner_->descriptors_.erase(descriptor_);
    }
    Status Read(std::uint64_t offset, int device, std::byte* to,
                std::uint64_t size_bytes) override {
      const auto contents = owner_->addresses_->Find(device, to, size_bytes);
      SEALPOINT_CHECK(contents.has_value());
      return owner_->Read(descriptor_, offset, *contents);
    }

   private:
    const std::shared_ptr<HostDeviceFiles> owner_;
    const int descriptor_;
  };

  std::uint64_t Locked(const std::uint64_t& counter) const {
    const std::lock_guard lock(mutex_);
    return counter;
  }
  Status Read(int descriptor, std::uint64_t offset, MutableByteSpan to) {
    const std::lock_guard lock(mutex_);
    ++reads_;
    const bool fails = fail_ != 0 && --fail_ == 0;
    const bool flips = flip_ != 0 && --flip_ == 0;
    const std::size_t size = fails ? to.size() / 2 : to.size();
    const ssize_t got = pread(descriptor, to.data(), size, static_cast<off_t>(offset));
    SEALPOINT_CHECK(got == static_cast<ssize_t>(size));
    if (fails) return Status(error_).AtOffset(offset + size);
    if (flips) to.front() ^= std::byte{4};
    return {};
  }

  const std::shared_ptr<DeviceAddresses> addresses_;
  mutable std::mutex mutex_;
  std::set<int> descriptors_;
  std::uint64_t reads_ = 0;
  std::uint64_t opened_ = 0;
  std::uint64_t open_max_ = 0;
  std::uint64_t fail_ = 0;  // reads until then; 0: none
  std::uint64_t flip_ = 0;
  Status error_;
  bool refuses_ = false;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DEVICE_HOST_DEVICE_FILES_H_
