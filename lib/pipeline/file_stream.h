// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_FILE_STREAM_H_
#define SEALPOINT_LIB_PIPELINE_FILE_STREAM_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "lib/device/staging_pool.h"
#include "lib/digest/hasher.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// Writes a file strictly forward through staging buffers: the caller fills one buffer (copying and
// hashing) while threads of `io` write the previous ones. Never seeks back, so the same stream
// could be a multipart upload. After the first failure every call returns that failure and nothing
// more is written. Thread safety: one caller at a time.
//
// A stream holds at most one partly filled buffer, and none while it waits for one, so any number
// of streams with a thread each can share a pool. A thread that fills several streams in turn needs
// a pool with more buffers than streams.
//
// A stream may begin before its file is there: it then holds all that is appended, in full buffers,
// until Bind. Who lets it do so sees to it that the pool has buffers left for everybody else.
class FileStream {
 public:
  // All arguments outlive the stream. Jobs of `io` must not wait for the stream.
  FileStream(WritableFile& file, StagingPool& pool, ThreadPool& io);
  // Without a file.
  FileStream(StagingPool& pool, ThreadPool& io);
  ~FileStream();  // Waits for writes under way; does not flush.
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  // Bytes appended so far = offset in the file of the next byte.
  std::uint64_t offset() const;

  // Copies `bytes` to the stream; the second form hashes them in the same pass.
  Status Append(ByteSpan bytes);
  Status Append(ByteSpan bytes, Hasher& hasher);
  Status AppendZeros(std::uint64_t count);
  // Zeros up to the next multiple of `alignment`.
  Status AlignTo(std::uint64_t alignment);

  // Free room in the current buffer (at least one byte), for a producer that writes in place;
  // Advance(n) then appends the first n bytes of it. n <= size of the window. A failed write shows
  // in the next call.
  Result<MutableByteSpan> Window();
  void Advance(std::uint64_t count);

  // What lies from `offset` on is not complete yet, in whatever buffer it is: none of these buffers
  // is written before a call that names a later place, or none.
  void HoldFrom(std::optional<std::uint64_t> offset);
  // Called when a buffer is needed and none is free, before waiting for one: completes something,
  // here or in another stream that fills the same pool on the same thread; false where nothing is
  // left to complete. Without it a held buffer would be waited for in vain.
  void SetDrain(std::function<Result<bool>()> relief) { relief_ = std::move(relief); }

  // Puts `bytes` in the place of those from the stream's beginning on. Preconditions: no file is
  // bound; so many were appended, and they lie in the first buffer.
  void ReplaceFront(ByteSpan bytes);
  // Names the file, once, and hands over what was held. `file` outlives the stream.
  void Bind(WritableFile& file);

  // Writes what is left and waits for all writes. The offset must be a multiple of 4096, else
  // InvalidArgument. Preconditions: a file is bound, and nothing is held. Neither syncs nor closes
  // the file. The stream may be continued.
  Status Flush();

  // True once nothing is left to write of what threads have; false when it took longer than that.
  bool WaitForWrites(std::chrono::milliseconds longest);
  // Bytes that are written, of whatever place.
  std::uint64_t bytes_written() const;

 private:
  struct Shared;
  // Appends `count` bytes; fill(done, window) makes those from `done` on.
  template <typename Fill>
  Status Produce(std::uint64_t count, const Fill& fill);
  // The first failure, if any; a failed stream keeps no buffer that others may need.
  Status CheckFailed();
  struct FilledBuffer {
    StagingBuffer buffer;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
  };
  // Takes the filled part of the buffer out of hand. Precondition: filled_ > 0.
  void SubmitBuffer();
  // Hands those that may be written to threads.
  void SubmitHeld();
  void Submit(FilledBuffer filled);
  Result<StagingBuffer> AcquireBuffer();

  StagingPool& pool_;
  ThreadPool& io_;
  std::shared_ptr<Shared> shared_;
  StagingBuffer buffer_;
  std::uint64_t buffer_offset_ = 0;  // file offset of the buffer's first byte
  std::uint64_t filled_ = 0;         // bytes used in the buffer
  bool is_bound_ = false;
  std::optional<std::uint64_t> hold_from_;
  std::deque<FilledBuffer> held_;  // in their order: before a file is bound, or from hold_from_ on
  std::function<Result<bool>()> relief_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PIPELINE_FILE_STREAM_H_
