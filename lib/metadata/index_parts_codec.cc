// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/index_parts_codec.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::metadata {
namespace {

enum class GeometryKind : std::uint64_t { kNone, kGrid, kBoxes };

void EncodeHead(const TensorFields& fields, const std::vector<std::string>& placement,
                WireWriter& out) {
  out.Put(std::uint64_t{fields.dtype});
  out.Put(std::uint64_t{fields.element_size});
  out.Put(std::uint64_t{fields.chunk_size_log2});
  out.Put(std::uint64_t{fields.fingerprint.has_value()});
  const Fingerprint fingerprint = fields.fingerprint.value_or(Fingerprint());
  for (const std::uint64_t value : fingerprint.values()) out.Put(value);
  out.Put(std::vector<std::uint64_t>(fields.shape.begin(), fields.shape.end()));
  out.Put(fields.attributes);
  out.Put(std::uint64_t{placement.size()});
  for (const std::string& text : placement) out.Put(text);
}

Result<TensorHead> DecodeHead(std::string_view name, WireReader& in) {
  TensorHead head{.name = name};
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t dtype, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t element_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t chunk_size_log2, in.Number());
  head.dtype = static_cast<std::uint16_t>(dtype);
  head.element_size = static_cast<std::uint16_t>(element_size);
  head.chunk_size_log2 = static_cast<std::uint8_t>(chunk_size_log2);
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_fingerprint, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t first, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t second, in.Number());
  if (has_fingerprint != 0) head.fingerprint = Fingerprint({first, second});
  SEALPOINT_ASSIGN_OR_RETURN(head.shape, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan attributes, in.Span());
  head.attributes = AsText(attributes);
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t texts, in.Number());
  for (std::uint64_t i = 0; i < texts; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(std::string text, in.Text());
    head.placement.push_back(std::move(text));
  }
  return head;
}

Bytes EncodeGeometry(const MergedTensor& tensor) {
  Bytes bytes;
  WireWriter out(bytes);
  const TensorGeometry* const geometry = tensor.geometry.get();
  const GeometryKind kind = geometry == nullptr ? GeometryKind::kNone
                            : geometry->grid    ? GeometryKind::kGrid
                                                : GeometryKind::kBoxes;
  out.PutSequence(tensor.fields.shape);
  out.Put(static_cast<std::uint64_t>(kind));
  if (kind == GeometryKind::kBoxes) {
    out.PutSequence(geometry->boxes);
    out.PutSequence(geometry->runs);
  }
  if (kind != GeometryKind::kGrid) return bytes;
  for (const std::vector<std::uint64_t>& cuts : geometry->grid->cuts) out.PutSequence(cuts);
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> all_cuts;
  for (const std::vector<std::uint64_t>& cuts : geometry->grid->run_cuts) {
    counts.push_back(cuts.size());
    all_cuts.insert(all_cuts.end(), cuts.begin(), cuts.end());
  }
  out.PutSequence(counts);
  out.PutSequence(all_cuts);
  return bytes;
}

Result<layout::Grid> DecodeGrid(WireReader& in, std::size_t ndim, std::uint64_t shard_count) {
  layout::Grid grid;
  for (std::size_t d = 0; d < ndim; ++d) {
    SEALPOINT_ASSIGN_OR_RETURN(std::vector<std::uint64_t> cuts, in.Sequence(shard_count));
    grid.cuts.push_back(std::move(cuts));
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> counts, in.Sequence(shard_count));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> cuts, in.Sequence(shard_count));
  std::size_t next = 0;
  for (const std::uint64_t count : counts) {
    if (count > cuts.size() - next) return MalformedMessage();
    const auto begin = cuts.begin() + static_cast<std::ptrdiff_t>(next);
    grid.run_cuts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    next += count;
  }
  return grid;
}

}  // namespace

void AppendFrame(Frame::Kind kind, std::string_view name, ByteSpan rest, Bytes& out) {
  WireWriter writer(out);
  writer.Put(static_cast<std::uint64_t>(kind));
  writer.Put(name);
  writer.Put(AsText(rest));
}

Status ReadFrames(ByteSpan message, std::vector<Frame>& frames) {
  WireReader in(message);
  while (!in.at_end()) {
    Frame frame;
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t kind, in.Number());
    frame.kind = kind == 0 ? Frame::Kind::kTensor : Frame::Kind::kObject;
    SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan name, in.Span());
    frame.name = AsText(name);
    SEALPOINT_ASSIGN_OR_RETURN(frame.rest, in.Span());
    frames.push_back(std::move(frame));
  }
  return {};
}

void SortFrames(std::vector<Frame>& frames) {
  std::sort(frames.begin(), frames.end(), [](const Frame& a, const Frame& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
}

TensorFields TensorHead::fields() const {
  return {.name = name,
          .shape = shape,
          .dtype = dtype,
          .element_size = element_size,
          .chunk_size_log2 = chunk_size_log2,
          .fingerprint = fingerprint,
          .attributes = attributes};
}

void EncodeTensorEntry(const TensorView& tensor, std::uint32_t blob, WireWriter& out) {
  const Shape shape = tensor.shape();
  EncodeHead({.name = tensor.name(),
              .shape = shape,
              .dtype = static_cast<std::uint16_t>(tensor.dtype()),
              .element_size = static_cast<std::uint16_t>(tensor.element_size()),
              .chunk_size_log2 = static_cast<std::uint8_t>(std::countr_zero(tensor.chunk_size())),
              .fingerprint = tensor.fingerprint(),
              .attributes = tensor.attributes()},
             tensor.placement(), out);
  std::vector<std::uint64_t> boxes;
  std::vector<std::uint64_t> runs;
  std::vector<std::uint64_t> first_records;
  bool all_full = true;
  tensor.ForEachShard([&](std::size_t shard, const Region& region) {
    boxes.insert(boxes.end(), region.box.offset.begin(), region.box.offset.end());
    boxes.insert(boxes.end(), region.box.extent.begin(), region.box.extent.end());
    runs.push_back(region.run.begin);
    runs.push_back(region.run.end);
    all_full = all_full && region.run == Run{0, layout::BoxElementCount(region.box)};
    first_records.push_back(tensor.shard_ref(shard).first_record);
  });
  if (all_full) runs.clear();
  out.Put(std::uint64_t{blob});
  out.Put(boxes);
  out.Put(runs);
  out.Put(first_records);
}

Result<TensorEntry> DecodeTensorEntry(const Frame& frame, std::size_t blob_count) {
  WireReader in(frame.rest);
  TensorEntry entry;
  SEALPOINT_ASSIGN_OR_RETURN(entry.head, DecodeHead(frame.name, in));
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(entry.boxes, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(entry.runs, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(entry.first_records, in.Numbers());
  entry.blob = static_cast<std::uint32_t>(blob);
  const std::size_t shards = entry.first_records.size();
  const bool fits = blob < blob_count &&
                    entry.boxes.size() == 2 * entry.head.shape.size() * shards &&
                    (entry.runs.empty() || entry.runs.size() == 2 * shards);
  if (!fits) return MalformedMessage();
  return entry;
}

void EncodeObjectEntry(const ObjectView& object, std::uint32_t blob, WireWriter& out) {
  out.Put(object.media_type());
  out.Put(object.size());
  out.Put(static_cast<std::uint64_t>(std::countr_zero(object.chunk_size())));
  out.Put(std::uint64_t{blob});
  out.Put(std::uint64_t{object.size() == 0 ? 0 : object.shard_ref().first_record});
}

Result<ObjectEntry> DecodeObjectEntry(const Frame& frame, std::size_t blob_count) {
  WireReader in(frame.rest);
  ObjectEntry entry{.name = std::string(frame.name)};
  SEALPOINT_ASSIGN_OR_RETURN(entry.media_type, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(entry.size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t chunk_size_log2, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t first_record, in.Number());
  if (blob >= blob_count) return MalformedMessage();
  entry.chunk_size_log2 = static_cast<std::uint8_t>(chunk_size_log2);
  entry.shard = {.blob = static_cast<std::uint32_t>(blob),
                 .first_record = static_cast<std::uint32_t>(first_record)};
  return entry;
}

void EncodeMerged(const MergedTensor& tensor, const std::vector<std::string>& placement,
                  WireWriter& out) {
  EncodeHead(tensor.fields, placement, out);
  out.Put(AsText(EncodeGeometry(tensor)));
  out.Put(std::uint64_t{tensor.shards.size()});
  for (const fb::ShardRef& ref : tensor.shards) {
    out.Put(std::uint64_t{ref.blob()} << 32 | ref.first_record());
  }
}

Result<MergedEntry> DecodeMerged(const Frame& frame) {
  WireReader in(frame.rest);
  MergedEntry entry;
  SEALPOINT_ASSIGN_OR_RETURN(entry.head, DecodeHead(frame.name, in));
  SEALPOINT_ASSIGN_OR_RETURN(entry.geometry, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> refs, in.Numbers());
  entry.shards.reserve(refs.size());
  for (const std::uint64_t ref : refs) {
    entry.shards.emplace_back(static_cast<std::uint32_t>(ref >> 32),
                              static_cast<std::uint32_t>(ref));
  }
  return entry;
}

Result<std::shared_ptr<const TensorGeometry>> DecodeGeometry(std::string_view bytes,
                                                             std::uint64_t shard_count) {
  WireReader in(AsBytes(bytes));
  SEALPOINT_ASSIGN_OR_RETURN(const Shape shape, in.Sequence(kNdimMax));
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t kind, in.Number());
  if (kind == static_cast<std::uint64_t>(GeometryKind::kNone)) {
    return std::shared_ptr<const TensorGeometry>();
  }
  auto geometry = std::make_shared<TensorGeometry>();
  if (kind == static_cast<std::uint64_t>(GeometryKind::kGrid)) {
    SEALPOINT_ASSIGN_OR_RETURN(geometry->grid, DecodeGrid(in, shape.size(), shard_count));
  } else {
    SEALPOINT_ASSIGN_OR_RETURN(geometry->boxes, in.Sequence(2 * shape.size() * shard_count));
    SEALPOINT_ASSIGN_OR_RETURN(geometry->runs, in.Sequence(2 * shard_count));
  }
  return std::shared_ptr<const TensorGeometry>(std::move(geometry));
}

}  // namespace sealpoint::internal::metadata
