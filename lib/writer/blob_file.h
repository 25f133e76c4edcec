// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_FILE_H_
#define SEALPOINT_LIB_WRITER_BLOB_FILE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/codec/chunk_codec.h"
#include "lib/device/device_copies.h"
#include "lib/digest/hasher.h"
#include "lib/format/file_header.h"
#include "lib/metadata/tensor_table.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/pipeline/file_stream.h"
#include "lib/writer/blob_layout.h"
#include "lib/writer/in_flight_chunks.h"
#include "lib/writer/later_copies.h"
#include "lib/writer/source_reader.h"
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

  // Devices also compute the digests of their memory, before the copy, and the two are compared.
  void CheckCopies() { checks_copies_ = true; }
  // See FileStream.
  void SetDrain(std::function<Result<bool>()> drain) { stream_.SetDrain(std::move(drain)); }
  // Whether some bytes are still to come from a device, or to be hashed.
  bool has_in_flight() const { return in_flight_.first_offset().has_value(); }
  // Waits for the oldest of them and hashes it.
  Status CompleteOldest();
  // Waits until no source is read any more that is written from where it lies, or copied later.
  Status CompleteBorrowed();

  // Whether a dense shard in this memory is written block by block, without a staging buffer, if
  // the file is not direct.
  static bool MayBorrow(const MemoryView& source, Codec codec, std::uint64_t raw_size);
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
  BlobFile(const Context& context, const FileHeader& header);
  // After an error it removes the file, unless another attempt owns the name (R-CMT-15).
  static Result<std::unique_ptr<WritableFile>> CreateFile(EngineParts& engine, Directory& directory,
                                                          const BlobId& id);

  // Appends its chunks. Their digests are known by CompleteBorrowed.
  Status AppendBorrowedChunks(SourceReader& source, const ShardEncoding& encoding);
  // The same where there is no file yet: CompleteBorrowed copies them, on several threads, and Bind
  // hashes the copies.
  Status AppendLaterCopiedChunks(SourceReader& source, const ShardEncoding& encoding);
  // Appends the chunks; returns the number of the first record.
  Result<std::uint32_t> AppendShard(SourceReader& source, const ShardEncoding& encoding);
  Status AppendChunk(SourceReader& source, const ShardEncoding& encoding, const SourceChunk& chunk);
  Status AppendRawChunk(SourceReader& source, const SourceChunk& chunk);
  Status AppendCodedChunk(SourceReader& source, const ShardEncoding& encoding,
                          const SourceChunk& chunk);
  // Queues the copies of a chunk, which is hashed later (CompleteOldest).
  Status AppendInFlightChunk(SourceReader& source, const SourceChunk& chunk);
  // The chunk's raw bytes, and their digest; of device memory once they are there.
  Result<Digest> TakeChunk(SourceReader& source, MutableByteSpan raw, const Digest* expected);
  // Has the device compute the digests of the next raw_size bytes: one per chunk; null if that
  // was not asked for, or is not possible.
  Result<const Digest*> QueueDigests(const SourceReader& source, const ShardEncoding& encoding);

  EngineParts& engine_;
  DeviceCopies& copies_;
  bool checks_copies_ = false;
  bool has_slot_ = false;
  BlobLayout layout_;
  std::unique_ptr<WritableFile> file_;  // absent while it is held
  // Chunks whose records lack the digests.
  struct BorrowedChunks {
    std::size_t first_record = 0;
    std::vector<Digest> digests{};  // being filled
  };
  LaterCopies later_copies_;             // into buffers of the stream
  std::deque<BorrowedChunks> borrowed_;  // filled in by jobs that the stream's end waits for
  FileStream stream_;
  Hasher hasher_;
  std::unique_ptr<ChunkCodec> codec_;  // of the engine; absent until a chunk is coded
  InFlightChunks in_flight_;
  std::deque<std::vector<Digest>> device_digests_;  // by shard
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_BLOB_FILE_H_
