// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_RANGE_FILES_H_
#define SEALPOINT_READERS_LOAD_RANGE_FILES_H_

#include <cstdint>
#include <memory>
#include <span>

#include "lib/container/blob_files.h"
#include "lib/transfer/delivery_plan.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::load {

// Which ranges of a read bypass the page cache.
enum class DirectReads : std::uint8_t {
  kNever,
  kIfCold,  // large ranges that are not in the page cache and that this process alone reads
  kAlways,
};

// The files of the ranges of a read. With kIfCold each range is judged when it is announced and
// again when it is read. Once another process fetches the file into the page cache, the rest is
// therefore read from there. Thread safety: all functions.
class RangeFiles {
 public:
  using File = std::shared_ptr<const ReadableFile>;

  // Reads from the same blobs as `blobs`, with its own open files.
  RangeFiles(const container::BlobFiles& blobs, DirectReads direct_reads)
      : direct_reads_(direct_reads),
        buffered_(blobs.InMode(IoMode::kBuffered)),
        direct_(buffered_.InMode(IoMode::kDirect)) {}

  // The errors of BlobFiles::Open.
  Result<File> Open(const transfer::PlanRange& range);
  // For a hint, as BlobFiles::TryOpen.
  File TryOpen(const transfer::PlanRange& range);
  // Whether most of the ranges bypass the page cache, judged by a few of them.
  bool AreMostlyDirect(std::span<const transfer::PlanRange> ranges);
  // The blobs without the page cache.
  container::BlobFiles direct() const { return direct_; }

 private:
  // Whether a range of a file that is open for buffered reads is to be read directly instead.
  bool IsReadDirectly(const transfer::PlanRange& range, const ReadableFile& file) const;

  const DirectReads direct_reads_;
  container::BlobFiles buffered_;
  container::BlobFiles direct_;
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_RANGE_FILES_H_
