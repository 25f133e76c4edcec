// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_DEVICE_INTAKE_H_
#define SEALPOINT_LIB_TRANSFER_DEVICE_INTAKE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "lib/device/device_copies.h"
#include "lib/digest/hasher.h"
#include "lib/transfer/intake.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::transfer {

// Copies device memory into the stream. Bytes are hashed once they have arrived, in the order of
// the file, while later copies are still running; until then the stream does not write them
// (FileStream::HoldFrom).
class DeviceIntake final : public Intake {
 public:
  explicit DeviceIntake(const IntakeContext& context) : context_(context) {}
  Status Begin(SourceReader& source, const ShardEncoding& encoding) override;
  Result<bool> CompleteOldest() override;

  // Lets the device compute the digests of the next raw_size bytes, one per chunk; they are
  // available when copies queued later have arrived. Null if that was not requested or is not
  // possible.
  Result<const Digest*> QueueDigests(const SourceReader& source, const ShardEncoding& encoding);
  // Copies the next bytes and waits for them. Returns their digest. `expected` is the digest
  // computed by the device, or null.
  Result<Digest> CopyNow(SourceReader& source, MutableByteSpan to, const Digest* expected);

 private:
  struct Chunk {
    std::size_t record = 0;
    const Digest* expected = nullptr;
    std::uint64_t bytes_left = 0;  // to be hashed
    ShardEncoding encoding{};
  };
  struct Part {
    ByteSpan bytes{};          // of one chunk
    std::uint64_t offset = 0;  // in the file
    device::DeviceCopies::Point arrival{};
    std::uint64_t offset_in_shard = 0;
  };
  // Queues one copy for the next bytes, even across chunks, because each copy keeps the link idle
  // for a few microseconds.
  Status QueuePiece(SourceReader& source, MutableByteSpan piece, std::uint64_t chunk_size,
                    std::uint64_t offset_in_shard);
  void HoldStream();

  const IntakeContext context_;
  digest::Hasher hasher_;
  std::deque<Chunk> chunks_;
  std::deque<Part> parts_;                          // of the chunks, in their order
  std::deque<std::vector<Digest>> device_digests_;  // by shard
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DEVICE_INTAKE_H_
