// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_INDEX_PARTS_CODEC_H_
#define SEALPOINT_LIB_METADATA_INDEX_PARTS_CODEC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/wire.h"
#include "lib/metadata/metadata.h"
#include "lib/metadata/tensor_merger.h"

// The messages of index_parts.h. Errors of reading are Comm.

namespace sealpoint::internal::metadata {

// One tensor or object of a message: kind, name, then the rest in a form that depends on the kind.
struct Frame {
  enum class Kind : std::uint64_t { kTensor, kObject } kind = Kind::kTensor;
  std::string_view name{};
  ByteSpan rest{};
};

void AppendFrame(Frame::Kind kind, std::string_view name, ByteSpan rest, Bytes& out);
// The frames borrow the message.
Status ReadFrames(ByteSpan message, std::vector<Frame>& frames);
// Sorts tensors before objects, each by name. Frames with equal names are in no particular order.
void SortFrames(std::vector<Frame>& frames);

// The part of a tensor's frame that does not describe its shards.
struct TensorHead {
  std::string_view name{};  // borrowed from the message
  Shape shape{};
  std::uint16_t dtype = 0;
  std::uint16_t element_size = 0;
  std::uint8_t chunk_size_log2 = 0;
  std::optional<Fingerprint> fingerprint{};
  std::string_view attributes{};  // encoded; borrowed, too
  std::vector<std::string> placement{};

  // Borrows the shape, too.
  TensorFields fields() const;
};

// The entry of one tensor in the manifest of one blob.
struct TensorEntry {
  TensorHead head{};
  std::uint32_t blob = 0;
  std::vector<std::uint64_t> boxes{};  // offsets and extents of each shard
  std::vector<std::uint64_t> runs{};   // empty if all runs are full
  std::vector<std::uint64_t> first_records{};
};
void EncodeTensorEntry(const TensorView& tensor, std::uint32_t blob, WireWriter& out);
// Checks that the lengths of the lists agree and that the blob number is below `blob_count`.
Result<TensorEntry> DecodeTensorEntry(const Frame& frame, std::size_t blob_count);

// An object on its way from a manifest to the index.
struct ObjectEntry {
  std::string name{};
  std::string media_type{};
  std::uint64_t size = 0;
  std::uint8_t chunk_size_log2 = 0;
  ShardRef shard{};
};
void EncodeObjectEntry(const ObjectView& object, std::uint32_t blob, WireWriter& out);
Result<ObjectEntry> DecodeObjectEntry(const Frame& frame, std::size_t blob_count);

// A merged tensor. `geometry` is encoded and serves as a key: tensors have equal bytes there if and
// only if they have equal shapes and equal geometries.
struct MergedEntry {
  TensorHead head{};
  std::string geometry{};
  std::vector<fb::ShardRef> shards{};
};
void EncodeMerged(const MergedTensor& tensor, const std::vector<std::string>& placement,
                  WireWriter& out);
Result<MergedEntry> DecodeMerged(const Frame& frame);
// Null if there are no shards.
Result<std::shared_ptr<const TensorGeometry>> DecodeGeometry(std::string_view bytes,
                                                             std::uint64_t shard_count);

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_INDEX_PARTS_CODEC_H_
