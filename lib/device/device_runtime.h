// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_DEVICE_RUNTIME_H_
#define SEALPOINT_LIB_DEVICE_DEVICE_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

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

// Copies between one device and the host in the order in which they are queued, on a stream of its
// own. All errors are Code::kDevice. After one, the queue is good for nothing but destruction.
//
// A queued operation reads and writes its memory at some time before a ticket that was taken after
// it is done; until then its host memory must exist, must not be changed and, if it is written, has
// no known content. Pinned host memory (DeviceRuntime::Pin) makes copies asynchronous; pageable
// memory works, but the queueing call may take as long as the copy.
//
// Threads: one thread at a time queues (WaitFor, Copy…, QueueDigests, Mark). IsDone and Wait may be
// called by any number of other threads meanwhile.
class CopyQueue {
 public:
  CopyQueue() = default;
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;
  // Waits until nothing that was queued runs any more. No other thread may be in a call.
  virtual ~CopyQueue() = default;

  virtual int device() const = 0;

  // What is queued from now on runs after all that is queued on `callers_stream` now: a stream of
  // the device's primary context, null its default stream. Does not wait on the host.
  virtual Status WaitFor(void* callers_stream) = 0;

  // Precondition of both: the host's span has the size of all rows.
  virtual Status CopyToHost(const DeviceRows& from, MutableByteSpan to) = 0;
  virtual Status CopyToDevice(ByteSpan from, const MutableDeviceRows& to) = 0;

  // The digest (XXH3-128, as ComputeDigest) of each chunk, computed in device memory. `to` is host
  // memory as that of a copy. Only if DeviceRuntime::CheckDigests succeeded.
  // Precondition: as many digests as chunks.
  virtual Status QueueDigests(const DeviceChunks& chunks, std::span<Digest> to) = 0;

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

  // Fills memory of the device with what the file holds from `offset` on; the bytes have arrived
  // when it returns. Knows no stream: whatever uses that memory must be done. Errors: Unsupported
  // (not so; the host can read these bytes all the same), Io, Incomplete (the file ends before
  // that), Device; the place has the offset. The content of the memory is unspecified then.
  virtual Status Read(std::uint64_t offset, int device, std::byte* to,
                      std::uint64_t size_bytes) = 0;
};

// The devices that this process can reach. Making one is cheap and touches no driver; that happens
// in the first call. Errors are Code::kDevice: no driver, no such device and a failed call alike;
// those of files are Unsupported if the host can read the file all the same.
// Not usable in a child forked by a process that has used it: errors there, and destruction that
// does nothing. Thread safety: all functions.
class DeviceRuntime {
 public:
  DeviceRuntime() = default;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;
  virtual ~DeviceRuntime() = default;

  // Success if copies from and to the device can be queued; else the reason why not.
  virtual Status CheckAvailable(int device) = 0;
  // Success if queues of the device compute digests; else the reason why not.
  virtual Status CheckDigests(int device) = 0;
  // The queue must not outlive the runtime.
  virtual Result<std::unique_ptr<CopyQueue>> MakeQueue(int device) = 0;

  // Pins host memory for all devices, whole pages. Precondition: some queue was made before (the
  // driver pins in the context of a device). An error leaves the memory as it was: pageable.
  virtual Status Pin(MutableByteSpan host) = 0;
  // Undoes a successful Pin of the same span; no copy may be using it.
  virtual void Unpin(MutableByteSpan host) = 0;

  // Success if devices can read some files; else the reason why not. Precondition of both: as
  // that of Pin.
  virtual Status CheckFiles() = 0;
  // `descriptor` is that of a regular file in direct mode. It must stay open as long as the result
  // lives, which must not outlive the runtime, and must have no other result meanwhile.
  virtual Result<std::unique_ptr<DeviceFile>> OpenFile(int descriptor) = 0;
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_DEVICE_RUNTIME_H_
