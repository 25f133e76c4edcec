// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_ENCODE_INTAKE_H_
#define SEALPOINT_LIB_TRANSFER_ENCODE_INTAKE_H_

#include <cstddef>
#include <memory>

#include "lib/codec/chunk_codec.h"
#include "lib/digest/hasher.h"
#include "lib/transfer/device_intake.h"
#include "lib/transfer/intake.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::transfer {

// Encodes chunks of any memory: each is copied and hashed, encoded, and appended to the stream.
class EncodeIntake final : public Intake {
 public:
  // `device` copies data from device memory.
  EncodeIntake(const IntakeContext& context, DeviceIntake& device)
      : context_(context), device_(device) {}
  ~EncodeIntake() override;
  EncodeIntake(const EncodeIntake&) = delete;
  EncodeIntake& operator=(const EncodeIntake&) = delete;

  Status Begin(SourceReader& source, const ShardEncoding& encoding) override;

 private:
  Status AppendChunk(SourceReader& source, const ShardEncoding& encoding, std::uint64_t size,
                     const Digest* expected);
  struct Encoded {
    Codec codec = Codec::kNone;
    std::size_t size = 0;
  };
  // In the smallest way; kNone if that is none. `begin`: of the chunk in the shard. `visit` gets
  // the blocks of `raw` if there is a base.
  Result<Encoded> Encode(const ShardEncoding& encoding, std::uint64_t begin, ByteSpan raw,
                         MutableByteSpan out, const codec::VisitBlock& visit);
  // The chunk's raw bytes, and their digest.
  Result<Digest> TakeChunk(SourceReader& source, MutableByteSpan raw, const Digest* expected);

  const IntakeContext context_;
  DeviceIntake& device_;
  digest::Hasher hasher_;
  std::unique_ptr<codec::ChunkCodec> codec_;  // of the engine; absent until a chunk is coded
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_ENCODE_INTAKE_H_
