// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/index_parts.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/metadata/index_encoder.h"
#include "lib/metadata/index_parts_codec.h"

namespace sealpoint::internal::metadata {
namespace {

Status AtName(const Frame& frame, Status error) {
  if (frame.kind == Frame::Kind::kTensor) return std::move(error).AtTensor(frame.name);
  return std::move(error).AtObject(frame.name);
}

// The owner's part of the work: merges the frames of one name at a time.
class EntryMerger {
 public:
  EntryMerger(std::span<const BlobId> blobs, const Limits& limits)
      : blobs_(blobs), merger_(limits, [this](std::uint32_t blob) { return BlobName(blob); }) {}

  Status Add(std::span<const Frame> frames) {
    return AtName(frames.front(), frames.front().kind == Frame::Kind::kTensor ? AddTensor(frames)
                                                                              : AddObject(frames));
  }
  Bytes TakePart() && { return std::move(part_); }

 private:
  std::string BlobName(std::uint32_t blob) const { return blobs_[blob].ToHex(); }

  Status AddTensor(std::span<const Frame> frames) {
    std::vector<TensorEntry> entries;
    entries.reserve(frames.size());
    for (const Frame& frame : frames) {
      SEALPOINT_ASSIGN_OR_RETURN(TensorEntry entry, DecodeTensorEntry(frame, blobs_.size()));
      entries.push_back(std::move(entry));
    }
    std::sort(entries.begin(), entries.end(),
              [](const TensorEntry& a, const TensorEntry& b) { return a.blob < b.blob; });
    merger_.Begin(entries.front().head.fields(), entries.front().blob);
    for (const TensorEntry& entry : std::span(entries).subspan(1)) {
      SEALPOINT_RETURN_IF_ERROR(merger_.Join(entry.head.fields(), entry.blob));
    }
    for (const TensorEntry& entry : entries) AddShards(entry);
    SEALPOINT_ASSIGN_OR_RETURN(const MergedTensor merged, merger_.Finish());
    const auto placed = std::find_if(entries.begin(), entries.end(), [](const TensorEntry& entry) {
      return !entry.head.placement.empty();
    });
    static const auto& nowhere = *new std::vector<std::string>;  // for saves in the background, too
    rest_.clear();
    WireWriter out(rest_);
    EncodeMerged(merged, placed == entries.end() ? nowhere : placed->head.placement, out);
    AppendFrame(Frame::Kind::kTensor, merged.fields.name, rest_, part_);
    return {};
  }

  void AddShards(const TensorEntry& entry) {
    const std::size_t box_size = 2 * entry.head.shape.size();
    for (std::size_t i = 0; i < entry.first_records.size(); ++i) {
      std::optional<Run> run;
      if (!entry.runs.empty()) run = Run{.begin = entry.runs[2 * i], .end = entry.runs[2 * i + 1]};
      merger_.AddShard(
          entry.boxes.data() + i * box_size, run,
          fb::ShardRef(entry.blob, static_cast<std::uint32_t>(entry.first_records[i])));
    }
  }

  Status AddObject(std::span<const Frame> frames) {
    std::vector<ObjectEntry> entries;
    for (const Frame& frame : frames) {
      SEALPOINT_ASSIGN_OR_RETURN(ObjectEntry entry, DecodeObjectEntry(frame, blobs_.size()));
      entries.push_back(std::move(entry));
    }
    if (entries.size() > 1) {
      std::sort(entries.begin(), entries.end(), [](const ObjectEntry& a, const ObjectEntry& b) {
        return a.shard.blob < b.shard.blob;
      });
      return InvalidArgument("the object is in blob ", BlobName(entries[0].shard.blob),
                             " and in blob ", BlobName(entries[1].shard.blob));
    }
    AppendFrame(Frame::Kind::kObject, frames.front().name, frames.front().rest, part_);
    return {};
  }

  const std::span<const BlobId> blobs_;
  TensorMerger merger_;
  Bytes part_;
  Bytes rest_;  // of the frame being written
};

// The committer's part of the work: adds what the owners merged to the index, in name order.
class PartJoiner {
 public:
  PartJoiner(std::uint64_t size_hint, std::size_t blob_count, const Limits& limits)
      : limits_(limits), blob_count_(blob_count), encoder_(size_hint, limits) {}

  Status Add(const Frame& frame) {
    return AtName(frame, frame.kind == Frame::Kind::kTensor ? AddTensor(frame) : AddObject(frame));
  }
  Result<Bytes> Finish(std::span<const BlobPin> pins, const IndexAttributes& attributes) {
    return encoder_.Finish(pins, attributes);
  }

 private:
  Status AddTensor(const Frame& frame) {
    SEALPOINT_ASSIGN_OR_RETURN(MergedEntry entry, DecodeMerged(frame));
    shard_count_ += entry.shards.size();
    if (shard_count_ > limits_.shard_count_max) {
      return MakeError(Code::kLimitExceeded, "index has at least ", shard_count_,
                       " shards, the limit is ", limits_.shard_count_max);
    }
    MergedTensor tensor{.fields = entry.head.fields(), .geometry = {}, .shards = entry.shards};
    SEALPOINT_ASSIGN_OR_RETURN(tensor.geometry,
                               FindGeometry(std::move(entry.geometry), entry.shards.size()));
    return encoder_.AddTensor(tensor, entry.head.placement);
  }

  Status AddObject(const Frame& frame) {
    SEALPOINT_ASSIGN_OR_RETURN(const ObjectEntry object, DecodeObjectEntry(frame, blob_count_));
    return encoder_.AddObject({.name = object.name,
                               .media_type = object.media_type,
                               .size = object.size,
                               .shard = fb::ShardRef(object.shard.blob, object.shard.first_record),
                               .chunk_size_log2 = object.chunk_size_log2});
  }

  Result<std::shared_ptr<const TensorGeometry>> FindGeometry(std::string bytes,
                                                             std::uint64_t shard_count) {
    const auto found = geometries_.find(bytes);
    if (found != geometries_.end()) return found->second;
    SEALPOINT_ASSIGN_OR_RETURN(auto geometry, DecodeGeometry(bytes, shard_count));
    geometries_.emplace(std::move(bytes), geometry);
    return geometry;
  }

  const Limits& limits_;
  const std::size_t blob_count_;
  IndexEncoder encoder_;
  std::uint64_t shard_count_ = 0;
  std::unordered_map<std::string, std::shared_ptr<const TensorGeometry>> geometries_;
};

}  // namespace

void EncodeEntries(const Metadata& manifest, std::uint32_t blob,
                   const std::function<Bytes&(std::string_view name)>& outgoing) {
  Bytes rest;
  for (std::size_t i = 0; i < manifest.tensor_count(); ++i) {
    const TensorView tensor = manifest.tensor(i);
    WireWriter writer(rest);
    EncodeTensorEntry(tensor, blob, writer);
    AppendFrame(Frame::Kind::kTensor, tensor.name(), rest, outgoing(tensor.name()));
    rest.clear();
  }
  for (std::size_t i = 0; i < manifest.object_count(); ++i) {
    const ObjectView object = manifest.object(i);
    WireWriter writer(rest);
    EncodeObjectEntry(object, blob, writer);
    AppendFrame(Frame::Kind::kObject, object.name(), rest, outgoing(object.name()));
    rest.clear();
  }
}

Result<Bytes> MergeEntries(std::span<const Bytes> received, std::span<const BlobId> blobs,
                           const Limits& limits) {
  std::vector<Frame> frames;
  for (const Bytes& message : received) {
    SEALPOINT_RETURN_IF_ERROR(ReadFrames(message, frames));
  }
  SortFrames(frames);
  EntryMerger merger(blobs, limits);
  for (std::size_t begin = 0; begin < frames.size();) {
    std::size_t end = begin + 1;
    while (end < frames.size() && frames[end].kind == frames[begin].kind &&
           frames[end].name == frames[begin].name) {
      ++end;
    }
    SEALPOINT_RETURN_IF_ERROR(merger.Add(std::span(frames).subspan(begin, end - begin)));
    begin = end;
  }
  return std::move(merger).TakePart();
}

Result<Bytes> JoinIndex(std::span<const ByteSpan> parts, std::span<const BlobPin> pins,
                        const IndexAttributes& attributes, const Limits& limits) {
  SEALPOINT_RETURN_IF_ERROR(CheckPins(pins, limits));
  std::vector<Frame> frames;
  std::uint64_t size_hint = 0;
  for (const ByteSpan part : parts) {
    size_hint += part.size();
    SEALPOINT_RETURN_IF_ERROR(ReadFrames(part, frames));
  }
  SortFrames(frames);
  PartJoiner joiner(size_hint, pins.size(), limits);
  for (const Frame& frame : frames) SEALPOINT_RETURN_IF_ERROR(joiner.Add(frame));
  return joiner.Finish(pins, attributes);
}

}  // namespace sealpoint::internal::metadata
