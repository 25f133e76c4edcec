// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_FILE_STREAM_H_
#define SEALPOINT_LIB_PIPELINE_FILE_STREAM_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lib/device/staging_pool.h"
#include "lib/digest/hasher.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::pipeline {

// Writes a file strictly forward through staging buffers: the caller fills one buffer (copying and
// hashing) while threads of `io` write the previous ones. Never seeks back, so the same stream
// could be a multipart upload. After the first failure every call returns that failure and nothing
// more is written. Thread safety: one caller at a time.
//
// A stream holds at most one partly filled buffer, and none while it waits for one. Any number of
// streams, each with its own thread, can therefore share a pool without a deadlock. A thread that
// fills several streams in turn needs a pool with more buffers than streams.
//
// A stream may begin before its file exists: until Bind it holds all appended data in full buffers.
// A caller that uses this must ensure that the pool has buffers left for all others
// (EngineParts::TryReserve).
class FileStream {
 public:
  // All arguments outlive the stream. Jobs of `io` must not wait for the stream, which waits for
  // them.
  FileStream(WritableFile& file, device::StagingPool& pool, ThreadPool& io);
  // Without a file.
  FileStream(device::StagingPool& pool, ThreadPool& io);
  // Maximum number of buffers of a stream with a file, unless they are held. Buffers waiting for
  // the threads of `io` keep these busy; more would waste memory.
  static std::uint64_t BuffersMax(const ThreadPool& io);
  ~FileStream();  // Waits for writes under way; does not flush.
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  // Bytes appended so far = offset in the file of the next byte.
  std::uint64_t offset() const;

  // Called for each block of the bytes of a call, with its offset there, while it is in the cache.
  using BlockVisitor = std::function<void(std::uint64_t at, ByteSpan block)>;

  // Copies `bytes` to the stream; the second form hashes them in the same pass.
  Status Append(ByteSpan bytes);
  Status Append(ByteSpan bytes, digest::Hasher& hasher, const BlockVisitor& visit = {});
  Status AppendZeros(std::uint64_t count);
  // Appends memory of the caller without a staging buffer; the memory must exist until
  // WaitForBorrowed returns. The threads of `io`, and this one while they are busy, copy, hash and
  // write it in small blocks that stay in the cache. Each of `digests` becomes that of the next
  // `unit` bytes as they are written, the last one that of the rest. Intended for files that copy
  // written data, to the page cache or to memory. Several threads may call `visit` at once.
  // Preconditions: the bound file is not direct; unit > 0; one digest per unit.
  Status AppendBorrowed(ByteSpan bytes, std::uint64_t unit, std::span<Digest> digests,
                        const BlockVisitor& visit = {});
  // Waits until borrowed memory is no longer read; after success the digests are available.
  Status WaitForBorrowed();
  // Zeros up to the next multiple of `alignment`.
  Status AlignTo(std::uint64_t alignment);

  // The free part of the current buffer (at least one byte), for a producer that writes in place.
  // Advance(n), with n <= the size of the window, then appends its first n bytes. A failed write is
  // reported by the next call.
  Result<MutableByteSpan> Window();
  void Advance(std::uint64_t count);

  // The bytes from `offset` on are not complete yet: no buffer that has some of them is written
  // before a call with a later offset, or with none.
  void HoldFrom(std::optional<std::uint64_t> offset);
  // `drain` is called before waiting for a buffer when none is free. It completes an operation that
  // holds buffers, in this or another stream that uses the same pool on the same thread, and
  // returns false if nothing is left to complete. Without it the thread could wait forever for a
  // buffer that only it can release.
  void SetDrain(std::function<Result<bool>()> drain) { drain_ = std::move(drain); }

  // Replaces the first bytes of the stream by `bytes`. Preconditions: no file is bound; at least as
  // many bytes were appended, and they are in the first buffer.
  void ReplaceFront(ByteSpan bytes);
  // Sets the file, once, and submits the buffers held so far. `file` outlives the stream.
  void Bind(WritableFile& file);

  // Writes the remaining data and waits for all writes. The offset must be a multiple of 4096, else
  // InvalidArgument. Preconditions: a file is bound, and nothing is held. Neither syncs nor closes
  // the file. More may be appended afterwards.
  Status Flush();

  // Waits for the submitted writes; false if they took longer than `timeout`.
  bool WaitForWrites(std::chrono::milliseconds timeout);
  // Bytes written so far, at any offset.
  std::uint64_t bytes_written() const;

 private:
  struct Shared;
  struct Borrowed;
  // On any thread; always counts down.
  static void WriteBorrowed(Shared& shared, const Borrowed& borrowed);
  // Appends `count` bytes; fill(done, window) produces the bytes from `done` on.
  template <typename Fill>
  Status Produce(std::uint64_t count, const Fill& fill);
  // Returns the first failure, if any. A failed stream gives its buffers back, since others may
  // wait for them.
  Status CheckFailed();
  struct FilledBuffer {
    device::StagingBuffer buffer;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
  };
  // Moves the current buffer to the held ones and submits all that may be written. Precondition:
  // filled_ > 0.
  void SubmitBuffer();
  // Submits the held buffers that may be written, in their order.
  void SubmitHeld();
  void Submit(FilledBuffer filled);
  Result<device::StagingBuffer> AcquireBuffer();

  device::StagingPool& pool_;
  ThreadPool& io_;
  std::shared_ptr<Shared> shared_;
  device::StagingBuffer buffer_;
  std::uint64_t buffer_offset_ = 0;  // file offset of the buffer's first byte
  std::uint64_t filled_ = 0;         // bytes used in the buffer
  bool is_bound_ = false;
  std::optional<std::uint64_t> hold_from_;
  std::deque<FilledBuffer> held_;  // in order; held before a file is bound, or from hold_from_ on
  std::function<Result<bool>()> drain_;
};

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_LIB_PIPELINE_FILE_STREAM_H_
