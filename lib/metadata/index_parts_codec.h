// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_INDEX_PARTS_CODEC_H_
#define SEALPOINT_LIB_METADATA_INDEX_PARTS_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/wire.h"
#include "lib/metadata/metadata.h"
#include "lib/metadata/tensor_merger.h"

// The messages of contents_exchange.h. Errors of reading are Comm.

namespace sealpoint::internal {

// One tensor or object of a message: kind, name, then the rest as its kind has it.
struct Frame {
  enum class Kind : std::uint64_t { kTensor, kObject } kind = Kind::kTensor;
  std::string name{};
  ByteSpan rest{};
};

void AppendFrame(Frame::Kind kind, std::string_view name, ByteSpan rest, Bytes& out);
// The frames borrow the message.
Status ReadFrames(ByteSpan message, std::vector<Frame>& frames);
// Tensors before objects, each by name, and those of one name in any order.
void SortFrames(std::vector<Frame>& frames);

// What a tensor's frame holds beside its shards.
struct TensorHead {
  std::string name{};
  Shape shape{};
  std::uint16_t dtype = 0;
  std::uint16_t element_size = 0;
  std::uint8_t chunk_size_log2 = 0;
  std::vector<std::string> placement{};

  // Borrows name and shape.
  TensorFields fields() const;
};

// What one blob says of one tensor.
struct TensorEntry {
  TensorHead head{};
  std::uint32_t blob = 0;
  std::vector<std::uint64_t> boxes{};  // offsets and extents of each shard
  std::vector<std::uint64_t> runs{};   // empty where all are full
  std::vector<std::uint64_t> first_records{};
};
void EncodeTensorEntry(const TensorView& tensor, std::uint32_t blob, WireWriter& out);
// The lists fit each other, and the blob is one of so many.
Result<TensorEntry> DecodeTensorEntry(const Frame& frame, std::size_t blob_count);

// An object, from its blob to the index.
struct ObjectEntry {
  std::string name{};
  std::string media_type{};
  std::uint64_t size = 0;
  std::uint8_t chunk_size_log2 = 0;
  ShardRef shard{};
};
void EncodeObjectEntry(const ObjectView& object, std::uint32_t blob, WireWriter& out);
Result<ObjectEntry> DecodeObjectEntry(const Frame& frame, std::size_t blob_count);

// A merged tensor. Equal geometries of tensors of one shape have equal bytes, and only these.
struct MergedEntry {
  TensorHead head{};
  std::string geometry{};
  std::vector<fb::ShardRef> shards{};
};
void EncodeMerged(const MergedTensor& tensor, const std::vector<std::string>& placement,
                  WireWriter& out);
Result<MergedEntry> DecodeMerged(const Frame& frame);
// Null where there are no shards.
Result<std::shared_ptr<const TensorGeometry>> DecodeGeometry(std::string_view bytes,
                                                             std::uint64_t shard_count);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_INDEX_PARTS_CODEC_H_
