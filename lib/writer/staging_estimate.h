// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_STAGING_ESTIMATE_H_
#define SEALPOINT_LIB_WRITER_STAGING_ESTIMATE_H_

#include <cstdint>
#include <set>
#include <string>

#include "sealpoint/blob_writer.h"

namespace sealpoint::internal::writer {

// How many staging buffers a StagedWriter fills at most, computed before the
// first byte is copied. Must count every byte that BlobStream puts into its stream.
class StagingEstimate {
 public:
  StagingEstimate(std::uint64_t blob_size_max_bytes, std::uint64_t buffer_size_bytes)
      : blob_size_max_(blob_size_max_bytes), buffer_size_(buffer_size_bytes) {}

  void AddShard(const TensorSpec& tensor, std::uint64_t raw_size);
  void AddEmpty(const TensorSpec& tensor);
  void AddObject(const ObjectSpec& object, std::uint64_t raw_size);

  // `part_buffer_count`: buffers per part of an upload (each blob needs one part); 0 if there are
  // no uploads.
  std::uint64_t buffer_count(std::uint64_t part_buffer_count = 0) const;

 private:
  std::uint64_t blob_size_max_ = 0;
  std::uint64_t buffer_size_ = 0;
  std::uint64_t streamed_ = 0;   // bytes that go through the buffers, without the headers
  std::uint64_t projected_ = 0;  // bytes that the writer counts against the size of a blob
  std::set<std::string, std::less<>> groups_;
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_STAGING_ESTIMATE_H_
