// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_STREAM_H_
#define SEALPOINT_LIB_WRITER_BLOB_STREAM_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "lib/device/device_copies.h"
#include "lib/format/file_header.h"
#include "lib/metadata/tensor_table.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/pipeline/file_stream.h"
#include "lib/transfer/intake_set.h"
#include "lib/transfer/source_reader.h"
#include "lib/writer/blob_layout.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/bytes.h"
#include "sealpoint/region.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::writer {

// Transfers the bytes of one blob from memory to its file: header, then shards in order of arrival,
// then the rest. They are written strictly forward without reading back or seeking, so that the
// same bytes could go to a pipe or an object store; only the header of a staged blob is replaced,
// in memory, before its first byte is written. After the first error only Release and destruction
// are allowed.
class BlobStream {
 public:
  // Objects used by a blob. They must outlive it (`copies` only until it was stopped). The tensors
  // are those of all blobs of a writer; copies transfer data from device memory.
  struct Context {
    pipeline::EngineParts& engine;
    device::DeviceCopies& copies;
    const metadata::TensorTable& tensors;
    bool checks_copies = false;   // see IntakeContext
    bool has_attributes = false;  // the header announces attributes
    // See FileStream.
    std::function<Result<bool>()> drain{};
  };
  // A header with a fresh id.
  static Result<format::FileHeader> MakeHeader(const Context& context,
                                               const BlobWriterOptions& options);

  // Into `file`, which outlives it.
  static Result<std::unique_ptr<BlobStream>> Create(const Context& context,
                                                    const format::FileHeader& header,
                                                    WritableFile& file);
  // Without a file: added data stays in staging buffers, which were reserved
  // (EngineParts::TryReserve), until Bind.
  static Result<std::unique_ptr<BlobStream>> CreateStaged(const Context& context,
                                                          const format::FileHeader& header);
  // Starts the writes, once. Nothing may be added afterwards.
  void Bind(WritableFile& file, const AttemptId& attempt);

  BlobId id() const { return layout_.id(); }
  std::uint64_t projected_size() const { return layout_.projected_size(); }
  bool announces_attributes() const { return announces_attributes_; }
  transfer::StreamTarget target() const { return target_; }  // as it was created

  // Appends a shard of a tensor of the table, the next raw_size bytes of `source`, and declares it.
  // Preconditions: checked arguments (tensor_checks.h); no object of the name was added.
  Status AddShard(std::uint32_t tensor, const Region& region, transfer::SourceReader& source,
                  const transfer::ShardEncoding& encoding);
  void AddEmptyTensor(std::uint32_t tensor) { layout_.DeclareTensor(tensor); }
  Status AddObject(const ObjectSpec& object, transfer::SourceReader source,
                   const transfer::ShardEncoding& encoding);
  // See Intake.
  Status Release() { return intakes_.Release(); }
  Result<bool> CompleteOldest() { return intakes_.CompleteOldest(); }

  // Writes table, manifest and trailer, and flushes. Nothing can be added afterwards, and the
  // tensors are no longer needed.
  Status End();
  // Afterwards, once. See BlobLayout.
  Bytes TakeSummary() { return layout_.TakeSummary(); }

  // See FileStream. End writes the data that is still in a buffer.
  bool WaitForWrites(std::chrono::milliseconds longest) { return stream_.WaitForWrites(longest); }
  std::uint64_t bytes_written() const { return stream_.bytes_written(); }

 private:
  BlobStream(const Context& context, const format::FileHeader& header,
             transfer::StreamTarget target);
  // Appends the chunks; returns the number of the first record.
  Result<std::uint32_t> AppendShard(transfer::SourceReader& source,
                                    const transfer::ShardEncoding& encoding);

  const transfer::StreamTarget target_;
  const bool announces_attributes_;
  BlobLayout layout_;
  pipeline::FileStream stream_;
  transfer::IntakeSet intakes_;
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_BLOB_STREAM_H_
