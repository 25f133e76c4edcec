// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_FILE_H_
#define SEALPOINT_LIB_WRITER_BLOB_FILE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/device/device_copies.h"
#include "lib/format/file_header.h"
#include "lib/metadata/tensor_table.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/pipeline/file_stream.h"
#include "lib/transfer/intake_set.h"
#include "lib/transfer/source_reader.h"
#include "lib/writer/blob_layout.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// One blob that is being written (spec/container.md §5): header, then shards as they come, then
// table, manifest and trailer. It is written strictly forward and never read back or seeked in, so
// that the same bytes could go to a pipe or an object store; only the header of a held blob is
// replaced, in memory, before its first byte is written. After the first error only destruction is
// allowed.
class BlobFile {
 public:
  // What a blob works with, which outlives it (`copies` unless it was stopped): the tensors are
  // those of all blobs of a writer; copies bring what lies in device memory.
  struct Context {
    EngineParts& engine;
    DeviceCopies& copies;
    const TensorTable& tensors;
    bool checks_copies = false;  // see IntakeContext
  };
  // Creates `<blob id>.blob` with a fresh id. `directory` outlives the file.
  static Result<std::unique_ptr<BlobFile>> Create(const Context& context, Directory& directory,
                                                  const AttemptId& attempt, std::uint64_t step);
  // One whose directory is not known yet: what is added stays in staging buffers, which were set
  // apart (EngineParts::TryReserve), until Bind.
  static Result<std::unique_ptr<BlobFile>> CreateHeld(const Context& context, std::uint64_t step);
  // Creates the file of a held one and lets the writes begin. The blob owns a slot from now on,
  // also after an error (EngineParts::ConvertReservation). `directory` outlives the file.
  Status Bind(Directory& directory, const AttemptId& attempt);

  // See FileStream. What is still in a buffer is written by Finish.
  bool WaitForWrites(std::chrono::milliseconds longest) { return stream_.WaitForWrites(longest); }
  std::uint64_t bytes_written() const { return stream_.bytes_written(); }

  ~BlobFile();
  BlobFile(const BlobFile&) = delete;
  BlobFile& operator=(const BlobFile&) = delete;

  const BlobId& id() const { return layout_.id(); }
  std::uint64_t projected_size() const { return layout_.projected_size(); }

  // See FileStream.
  void SetDrain(std::function<Result<bool>()> drain) { stream_.SetDrain(std::move(drain)); }
  // See IntakeSet.
  Result<bool> CompleteOldest() { return intakes_.CompleteOldest(); }
  Status Release() { return intakes_.Release(); }
  bool is_direct() const { return file_ && file_->is_direct(); }

  // Appends a shard of a tensor of the table, the next raw_size bytes of `source`, and declares it.
  // Preconditions: checked arguments (tensor_checks.h); no object of the name was added.
  Status AddShard(std::uint32_t tensor, const Region& region, SourceReader& source,
                  const ShardEncoding& encoding);
  void AddEmptyTensor(std::uint32_t tensor) { layout_.DeclareTensor(tensor); }
  Status AddObject(std::string_view name, std::string_view media_type, SourceReader source,
                   const ShardEncoding& encoding);

  // Table, manifest, trailer; flush. Nothing can be added any more, and the tensors are not needed.
  Status AppendTail();
  // Then: sync, close. InvalidArgument for the same shard twice.
  Result<BlobSummary> Finish(const Limits& limits);

 private:
  // Without a file if it is null.
  BlobFile(const Context& context, const FileHeader& header, std::unique_ptr<WritableFile> file);
  // After an error it removes the file, unless another attempt owns the name (R-CMT-15).
  static Result<std::unique_ptr<WritableFile>> CreateFile(EngineParts& engine, Directory& directory,
                                                          const BlobId& id);

  // Appends the chunks; returns the number of the first record.
  Result<std::uint32_t> AppendShard(SourceReader& source, const ShardEncoding& encoding);

  EngineParts& engine_;
  bool has_slot_ = false;
  BlobLayout layout_;
  std::unique_ptr<WritableFile> file_;  // absent while it is held
  FileStream stream_;
  IntakeSet intakes_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_BLOB_FILE_H_
