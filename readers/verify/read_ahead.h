// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_READ_AHEAD_H_
#define SEALPOINT_READERS_VERIFY_READ_AHEAD_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "lib/device/staging_pool.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// Reads a range of a file forward in pieces, each of one buffer of the pool. While the caller
// judges a piece, a thread of `io` reads those behind it, so that the disk does not wait for the
// digest. A range of one piece is read in place by the caller. One caller.
class ReadAhead {
 public:
  // All arguments outlive the object. The file is open as IoMode::kDirect: whole pages are read.
  ReadAhead(const ReadableFile& file, StagingPool& pool, ThreadPool& io, std::uint64_t begin,
            std::uint64_t end);
  ~ReadAhead();  // Waits for reads under way.
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Bytes of the range in the file's order. After a failed read `size` bytes at `offset` are
  // missing, and the next piece can be had all the same.
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    ByteSpan bytes;  // empty after a failed read; valid until the next call
    Status status;
  };
  // Nothing behind the end. Errors: no memory for the buffers.
  Result<std::optional<Piece>> Next();

 private:
  // One is being judged, one is being read, the others bridge the time until the judge runs again.
  static constexpr std::size_t kSlotCount = 4;
  struct Slot {
    StagingBuffer buffer;
    std::uint64_t offset = 0;  // of the first page
    std::uint64_t size = 0;    // whole pages
    bool is_read = false;      // guarded by mutex_
    Status status;             // likewise
  };
  Status Start();
  void ReadInto(Slot& slot);
  void SubmitNext(Slot& slot);
  Piece PieceOf(const Slot& slot) const;

  const ReadableFile& file_;
  StagingPool& pool_;
  ThreadPool& io_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  std::uint64_t next_offset_;  // of the next read to be submitted
  std::uint64_t pages_end_;
  std::size_t started_ = 0;  // slots in use
  std::size_t current_ = 0;  // slot of the next piece
  bool is_begun_ = false;
  std::array<Slot, kSlotCount> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t pending_ = 0;  // guarded by mutex_
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_READ_AHEAD_H_
