// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_SOURCE_READER_H_
#define SEALPOINT_LIB_TRANSFER_SOURCE_READER_H_

#include <cstdint>

#include "lib/device/device_runtime.h"
#include "sealpoint/bytes.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::transfer {

// Delivers the bytes of a region in row-major (run) order. Dense memory is returned in place;
// strided memory is gathered in pieces into a small buffer that stays in the cache.
class SourceReader {
 public:
  // Precondition: the memory is that of the region. Borrows the memory.
  SourceReader(const Region& region, std::uint32_t element_size, const MemoryView& source);
  // The bytes [begin, end) of the dense source, without a view: objects.
  explicit SourceReader(ByteSpan bytes);

  std::uint64_t remaining_bytes() const { return end_ - position_; }
  // The next bytes, at most `size_max`; valid until the next call. At least one element if
  // something remains. Preconditions: size_max is a positive multiple of the element size; the
  // memory is the host's.
  ByteSpan Next(std::uint64_t size_max);

  const MemoryView& view() const { return source_; }
  bool is_dense() const { return is_dense_; }
  // Address of the next byte of dense memory.
  const std::byte* position() const { return source_.data + position_; }
  // For device memory: queues a copy of the next bytes. Precondition: at most remaining_bytes(),
  // and whole elements if the memory is strided.
  Status QueueNext(device::CopyQueue& queue, MutableByteSpan to);

 private:
  Region region_;
  std::uint64_t element_size_ = 1;
  MemoryView source_;
  bool is_dense_ = true;
  std::uint64_t position_ = 0;  // bytes of the region delivered
  std::uint64_t end_ = 0;
  Bytes gathered_;  // of the host's strided memory
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_SOURCE_READER_H_
