// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_LAYOUT_H_
#define SEALPOINT_LIB_WRITER_BLOB_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "lib/format/chunk_table.h"
#include "lib/format/file_header.h"
#include "lib/format/trailer.h"
#include "lib/metadata/manifest_builder.h"
#include "lib/metadata/tensor_table.h"
#include "lib/transfer/shard_encoding.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/id.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::writer {

// Position of each byte of a blob (spec/container.md §5): header, shards in order of arrival,
// table, manifest, trailer. Arithmetic only; no payload and no file.
class BlobLayout final : public transfer::ChunkSink {
 public:
  // Borrows the tensors, which may grow meanwhile.
  BlobLayout(const format::FileHeader& header, const metadata::TensorTable& tensors);

  BlobId id() const { return BlobId(header_.id); }
  ByteSpan header() const { return header_bytes_; }  // the first bytes of the blob
  void SetAttempt(const AttemptId& attempt);

  // Where the next byte goes.
  std::uint64_t offset() const { return offset_; }
  // Length of the blob if it ended now, without the alignment of its end.
  std::uint64_t projected_size() const;
  // Maximum space for one more shard or object and its declaration, without its payload and
  // records.
  static std::uint64_t RoomToDeclare(const metadata::TensorAttributes& tensor);
  static std::uint64_t RoomToDeclare(const ObjectSpec& object);
  // Space for its payload and records.
  static std::uint64_t RoomForBytes(const transfer::ShardEncoding& encoding);

  // Begins a shard, whose chunks follow `padding` zeros. Errors: LimitExceeded.
  struct ShardPlace {
    std::uint64_t padding = 0;
    std::uint32_t first_record = 0;
  };
  Result<ShardPlace> AddShard(const transfer::ShardEncoding& encoding);
  std::size_t AddChunk(const transfer::StoredChunk& chunk) override;
  void SetDigest(std::size_t record, const Digest& raw) override;
  void AddFingerprint(std::uint32_t tensor, const Fingerprint& of_elements) override {
    manifest_.AddFingerprint(tensor, of_elements);
  }

  // Declarations for the manifest.
  void DeclareTensor(std::uint32_t tensor);
  void DeclareShard(std::uint32_t tensor, const Region& region, std::uint32_t first_record);
  void DeclareObject(const ObjectSpec& object, const transfer::ShardEncoding& encoding,
                     std::uint32_t first_record);

  // Appends everything after the chunks: pieces of bytes, preceded by zeros. Nothing can be added
  // afterwards, and the tensors are no longer needed. Memory is freed as its bytes are appended.
  // Errors: those of `append`; LimitExceeded.
  using Append = std::function<Status(std::uint64_t zeros, ByteSpan bytes)>;
  Status End(const Append& append);
  // Afterwards, once: header, trailer and manifest, for the summary.
  Bytes TakeSummary();

 private:
  Status AppendPiece(std::uint64_t alignment, ByteSpan bytes, const Append& append);

  format::FileHeader header_;
  Bytes header_bytes_;
  std::uint64_t offset_ = format::kHeaderSize;
  Bytes records_;                     // encoded
  transfer::ShardEncoding encoding_;  // of the last shard
  std::uint64_t chunk_ = 0;           // the next one of it
  std::uint32_t shard_count_ = 0;
  std::uint64_t raw_bytes_ = 0;
  std::uint64_t manifest_estimate_ = 0;
  const metadata::TensorTable& tensors_;
  metadata::ManifestBuilder manifest_;
  // Made by End.
  metadata::EncodedManifest encoded_manifest_;
  format::TrailerBytes trailer_bytes_{};
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_BLOB_LAYOUT_H_
