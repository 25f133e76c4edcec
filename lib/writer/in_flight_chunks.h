// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_IN_FLIGHT_CHUNKS_H_
#define SEALPOINT_LIB_WRITER_IN_FLIGHT_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "lib/device/device_copies.h"
#include "lib/digest/hasher.h"
#include "lib/writer/blob_layout.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// A chunk as it lies in memory.
struct SourceChunk {
  std::uint64_t raw_size = 0;
  // Its digest as the device computed it, or null; read when all of the chunk has arrived.
  const Digest* expected = nullptr;
};

// The chunks of one blob whose bytes are on their way from a device into staging memory. They are
// hashed once they have arrived, in the order of the file, while later copies are still running.
// The stream must not write (FileStream::HoldFrom) what is behind first_offset(): it is not there
// yet.
class InFlightChunks {
 public:
  explicit InFlightChunks(DeviceCopies& copies) : copies_(copies) {}

  void BeginChunk(const SourceChunk& chunk, std::size_t record);
  // The next bytes of the chunk begun last, at `offset` of the file.
  void AddBytes(ByteSpan bytes, std::uint64_t offset, const DeviceCopies::Point& arrival);

  // Where the oldest that has not been completed lies in the file.
  std::optional<std::uint64_t> first_offset() const;
  // Waits for the oldest bytes and hashes them; with the last ones of a chunk its record in
  // `layout` gets its digest. Errors: Device, also if the digests differ. Precondition: there is
  // one.
  Status CompleteOldest(BlobLayout& layout);

 private:
  struct Chunk {
    std::size_t record = 0;
    const Digest* expected = nullptr;
    std::uint64_t bytes_left = 0;  // to be hashed
  };
  struct Part {
    ByteSpan bytes{};
    std::uint64_t offset = 0;
    DeviceCopies::Point arrival{};
  };

  DeviceCopies& copies_;
  Hasher hasher_;
  std::deque<Chunk> chunks_;
  std::deque<Part> parts_;  // of the chunks, in their order
};

// Device if the digest of what arrived is not the one that the device computed. `expected` may be
// null: then nothing is compared.
Status CheckArrived(const Digest& found, const Digest* expected);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_IN_FLIGHT_CHUNKS_H_
