// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_INTAKE_H_
#define SEALPOINT_LIB_TRANSFER_INTAKE_H_

#include <cstddef>

#include "lib/device/device_copies.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/pipeline/file_stream.h"
#include "lib/transfer/shard_encoding.h"
#include "lib/transfer/source_reader.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// Objects used by the intakes of one file. They must outlive the intakes (`copies` only until it
// was stopped).
struct IntakeContext {
  pipeline::EngineParts& engine;
  device::DeviceCopies& copies;
  pipeline::FileStream& stream;  // of the file
  ChunkSink& chunks;             // its table
  // Devices also compute the digests of their memory, before the copy, and the two are compared.
  bool checks_copies = false;
};

// A method of moving bytes from memory into the stream of a file. When Begin returns, the position
// of each byte in the file is fixed. The methods differ in the time at which bytes are read,
// appended to the stream and hashed:
//
//   after           the source is free   digests are known
//   Begin           copied, encoded      copied, encoded
//   Release         all others           borrowed
//   BeforeWrites                         snapshot
//   Complete                             all
//
// An error ends the file: the stream keeps it, and only Release and destruction are allowed.
// Thread safety: one caller at a time.
class Intake {
 public:
  virtual ~Intake() = default;

  // Takes the next raw_size bytes of the source: the chunks of the shard that `chunks` began last.
  // The memory is borrowed until Release.
  virtual Status Begin(SourceReader& source, const ShardEncoding& encoding) = 0;
  // When it returns, also with an error, no source is read any more. Copies from devices are
  // complete only after their DeviceCopies were waited for.
  virtual Status Release() { return {}; }
  // In a file that began without a place, once: the next thing that happens is that it is written,
  // and that the buffers go.
  virtual void BeforeWrites() {}
  // Completes the oldest bytes, because their buffer cannot be written before; false if there are
  // none.
  virtual Result<bool> CompleteOldest() { return false; }
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_INTAKE_H_
