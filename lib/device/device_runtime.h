// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_DEVICE_RUNTIME_H_
#define SEALPOINT_LIB_DEVICE_DEVICE_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/fingerprint/part.h"
#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::device {

// Rows of equal length in device memory: row r is at data + r*pitch_bytes. On the host the same
// rows are back to back. The pitch of a source may be anything, zero and negative included; rows of
// a destination must not overlap. Rows that are not ascending with gaps of a few GiB at most cost
// one copy each.
template <typename Byte>
struct BasicDeviceRows {
  Byte* data = nullptr;  // a device address; never dereferenced by the host
  std::uint64_t row_count = 1;
  std::uint64_t row_bytes = 0;
  std::int64_t pitch_bytes = 0;  // without meaning for a single row

  std::uint64_t size_bytes() const { return row_count * row_bytes; }
};
using DeviceRows = BasicDeviceRows<const std::byte>;
using MutableDeviceRows = BasicDeviceRows<std::byte>;

// Device memory without gaps, cut into chunks of equal length; the last may be shorter.
struct DeviceChunks {
  const std::byte* data = nullptr;  // a device address of any alignment
  std::uint64_t size_bytes = 0;
  std::uint64_t chunk_size_bytes = 0;

  // Precondition: chunk_size_bytes != 0.
  std::uint64_t count() const {
    return size_bytes / chunk_size_bytes + (size_bytes % chunk_size_bytes != 0 ? 1 : 0);
  }
};

// Copies between one device and the host in queue order, on its own stream. All errors are
// Code::kDevice. After an error, the queue can only be destroyed.
//
// A queued operation accesses its memory at some time before a later ticket is done. Until then its
// host memory must exist and must not be changed; if it is written, its content is unspecified.
// Pinned host memory (DeviceRuntime::Pin) makes copies asynchronous; pageable memory works, but the
// queueing call may take as long as the copy.
//
// Threads: one thread at a time queues (WaitFor, Copy…, Queue…, Mark). Any number of other
// threads may call IsDone and Wait meanwhile.
class CopyQueue {
 public:
  CopyQueue() = default;
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;
  // Waits until no queued operation runs. No other thread may be in a call.
  virtual ~CopyQueue() = default;

  virtual int device() const = 0;

  // Later work of this queue runs after all work that is on `callers_stream` now: a stream of the
  // device's primary context, or null for its default stream. Does not wait on the host.
  virtual Status WaitFor(void* callers_stream) = 0;

  // Precondition of both: the host's span has the size of all rows.
  virtual Status CopyToHost(const DeviceRows& from, MutableByteSpan to) = 0;
  virtual Status CopyToDevice(ByteSpan from, const MutableDeviceRows& to) = 0;

  // The digest (XXH3-128, as ComputeDigest) of each chunk, computed in device memory. `to` is host
  // memory as that of a copy. Only if DeviceRuntime::CheckKernels succeeded.
  // Precondition: as many digests as chunks.
  virtual Status QueueDigests(const DeviceChunks& chunks, std::span<Digest> to) = 0;

  // The sums of the fingerprint of dense device memory with the bytes of a part, computed on the
  // device. `to` is host memory as that of a copy. Only if DeviceRuntime::CheckKernels succeeded.
  virtual Status QueueFingerprint(const fingerprint::Part& part, const std::byte* data,
                                  fingerprint::Pair& to) = 0;

  // A ticket, greater than all before, that is done when all that is queued so far is.
  virtual Result<std::uint64_t> Mark() = 0;
  // Both report an error if anything before the ticket failed. A ticket that was done once is done.
  // Precondition: Mark of this queue returned the ticket.
  virtual Result<bool> IsDone(std::uint64_t ticket) = 0;  // does not wait
  virtual Status Wait(std::uint64_t ticket) = 0;
};

// A file that devices read by themselves, past the host's memory (GPUDirect Storage). Thread
// safety: all functions.
class DeviceFile {
 public:
  DeviceFile() = default;
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;
  virtual ~DeviceFile() = default;

  // Reads the file from `offset` into device memory; the bytes have arrived when it returns. It is
  // not ordered with any stream, so earlier uses of that memory must be complete. Errors:
  // Unsupported (not possible this way; the host can still read these bytes), Io, Incomplete (the
  // file ends too early), Device; the place has the offset. After an error the memory is
  // unspecified.
  virtual Status Read(std::uint64_t offset, int device, std::byte* to,
                      std::uint64_t size_bytes) = 0;
};

// The devices available to this process. Creating one is cheap and does not use a driver; the first
// call does. Errors are Code::kDevice for a missing driver, a missing device and a failed call;
// errors of files are Unsupported if the host can still read the file. In a child forked by a
// process that has used it, calls fail and destruction does nothing. Thread safety: all functions.
class DeviceRuntime {
 public:
  DeviceRuntime() = default;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;
  virtual ~DeviceRuntime() = default;

  // Success if copies from and to the device can be queued; otherwise the reason.
  virtual Status CheckAvailable(int device) = 0;
  // Success if queues of the device compute digests and fingerprints; otherwise the reason.
  virtual Status CheckKernels(int device) = 0;
  // The queue must not outlive the runtime.
  virtual Result<std::unique_ptr<CopyQueue>> MakeQueue(int device) = 0;

  // Pins host memory for all devices, whole pages. Precondition: some queue was made before (the
  // driver pins in the context of a device). An error leaves the memory as it was: pageable.
  virtual Status Pin(MutableByteSpan host) = 0;
  // Undoes a successful Pin of the same span; no copy may be using it.
  virtual void Unpin(MutableByteSpan host) = 0;

  // Success if devices can read some files; otherwise the reason. Precondition of both: as that of
  // Pin.
  virtual Status CheckFiles() = 0;
  // `descriptor` is that of a regular file in direct mode. It must stay open as long as the result
  // exists, and only one result may exist for it. The runtime must outlive the result.
  virtual Result<std::unique_ptr<DeviceFile>> OpenFile(int descriptor) = 0;
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_DEVICE_RUNTIME_H_
