// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_READ_AHEAD_H_
#define SEALPOINT_READERS_VERIFY_READ_AHEAD_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "lib/device/staging_pool.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::verify {

// Reads a range of a file forward in parts, each of one buffer of the pool. While the caller checks
// a part, a thread of `io` reads the following parts, so that the disk does not wait for the
// digest. A range of one part is read in place by the caller. One caller.
class ReadAhead {
 public:
  // All arguments outlive the object. The file is open as IoMode::kDirect: whole pages are read.
  ReadAhead(const ReadableFile& file, device::StagingPool& pool, pipeline::ThreadPool& io,
            std::uint64_t begin, std::uint64_t end);
  ~ReadAhead();  // Waits for reads under way.
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Bytes of the range in file order. After a failed read, `size` bytes at `offset` are missing,
  // and the next part is still available.
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    ByteSpan bytes;  // empty after a failed read; valid until the next call
    Status status;
  };
  // Empty after the end. Errors: no memory for the buffers.
  Result<std::optional<Part>> Next();

 private:
  // One is being checked, one is being read, one waits to be read at once. More would cost more in
  // the processor's cache than they gain.
  static constexpr std::size_t kWindowCount = 3;
  struct Window {
    device::StagingBuffer buffer;
    std::uint64_t offset = 0;  // of the first page
    std::uint64_t size = 0;    // whole pages
    bool is_read = false;      // guarded by Sync::mutex
    Status status;             // likewise
  };
  // Shared with the jobs, so that they can notify without the lock even after this object was
  // destroyed.
  struct Sync {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t pending = 0;  // reads under way
  };
  Status Start();
  Status ReadInto(const Window& window) const;
  void SubmitNext(Window& window);
  Part PartOf(const Window& window) const;

  const ReadableFile& file_;
  device::StagingPool& pool_;
  pipeline::ThreadPool& io_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  std::uint64_t next_offset_;  // of the next read to be submitted
  std::uint64_t pages_end_;
  std::size_t started_ = 0;  // windows in use
  std::size_t current_ = 0;  // window of the next part
  bool is_begun_ = false;
  std::array<Window, kWindowCount> windows_;
  const std::shared_ptr<Sync> sync_ = std::make_shared<Sync>();
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_READ_AHEAD_H_
