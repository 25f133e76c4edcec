// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/format/contents_builder.h"
#include "lib/format/contents_encoder.h"
#include "lib/format/contents_verify.h"
#include "lib/layout/grid.h"
#include "lib/layout/tiling.h"

namespace sealpoint::internal {
namespace {

constexpr std::uint64_t kEntryOverheadBytes = 256;
constexpr std::uint64_t kTypicalTensorBytes = 128;

// An entry of a manifest and the position of its blob in the index.
template <typename Table>
struct Entry {
  const Table* table = nullptr;
  std::uint32_t blob = 0;
};

const flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>* VectorOf(const fb::Manifest& manifest,
                                                                     const fb::Tensor*) {
  return manifest.tensors();
}
const flatbuffers::Vector<flatbuffers::Offset<fb::Object>>* VectorOf(const fb::Manifest& manifest,
                                                                     const fb::Object*) {
  return manifest.objects();
}

// Walks the entries of all manifests, which are sorted by name, in one order: a heap holds the next
// entry of each manifest.
template <typename Table>
class NameMerger {
 public:
  explicit NameMerger(std::span<const BlobContribution* const> blobs) {
    for (std::uint32_t i = 0; i < blobs.size(); ++i) {
      const auto* tables =
          VectorOf(ContentsTables::ManifestOf(*blobs[i]->manifest), static_cast<Table*>(nullptr));
      if (tables->size() != 0) heap_.push_back({TextOf(tables->Get(0)->name()), i, 0, tables});
    }
    std::make_heap(heap_.begin(), heap_.end(), IsAbove);
  }

  // The entries of the next name by blob; false at the end.
  bool Next(std::vector<Entry<Table>>* entries) {
    entries->clear();
    if (heap_.empty()) return false;
    const std::string_view name = heap_.front().name;
    while (!heap_.empty() && heap_.front().name == name) {
      Cursor& cursor = heap_.front();
      entries->push_back({cursor.tables->Get(cursor.next), cursor.blob});
      if (++cursor.next == cursor.tables->size()) {
        std::pop_heap(heap_.begin(), heap_.end(), IsAbove);
        heap_.pop_back();
      } else {
        cursor.name = TextOf(cursor.tables->Get(cursor.next)->name());
        SinkFront();
      }
    }
    return true;
  }

 private:
  struct Cursor {
    std::string_view name;
    std::uint32_t blob = 0;
    flatbuffers::uoffset_t next = 0;
    const flatbuffers::Vector<flatbuffers::Offset<Table>>* tables = nullptr;
  };

  static bool IsAbove(const Cursor& a, const Cursor& b) {
    const int order = a.name.compare(b.name);
    return order != 0 ? order > 0 : a.blob > b.blob;
  }

  void SinkFront() {
    std::size_t at = 0;
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) return;
      if (child + 1 < heap_.size() && IsAbove(heap_[child], heap_[child + 1])) ++child;
      if (!IsAbove(heap_[at], heap_[child])) return;
      std::swap(heap_[at], heap_[child]);
      at = child;
    }
  }

  std::vector<Cursor> heap_;
};

// A shard of the tensor at hand.
struct Part {
  const std::uint64_t* box = nullptr;  // 2 * ndim numbers in a manifest
  Run run;
  bool is_full = true;
  fb::ShardRef ref;
};

class IndexMerger {
 public:
  IndexMerger(std::vector<const BlobContribution*> blobs, const Limits& limits)
      : blobs_(std::move(blobs)),
        limits_(limits),
        encoder_(SizeHint(), limits.index_size_max_bytes) {}

  Result<Bytes> Merge(const IndexFacts& facts) {
    NameMerger<fb::Tensor> tensors(blobs_);
    std::vector<Entry<fb::Tensor>> tensor;
    while (tensors.Next(&tensor)) {
      Status status = AddTensor(tensor);
      if (!status.ok()) return std::move(status).AtTensor(TextOf(tensor[0].table->name()));
    }
    NameMerger<fb::Object> objects(blobs_);
    std::vector<Entry<fb::Object>> object;
    while (objects.Next(&object)) {
      Status status = AddObject(object);
      if (!status.ok()) return std::move(status).AtTensor(TextOf(object[0].table->name()));
    }
    return Finish(facts);
  }

 private:
  std::uint64_t SizeHint() const {
    std::uint64_t size = 0;
    std::uint64_t tensors = 0;
    for (const BlobContribution* blob : blobs_) {
      size += kEntryOverheadBytes + blob->manifest->total_shard_count() * sizeof(fb::ShardRef);
      tensors = std::max<std::uint64_t>(tensors, blob->manifest->tensor_count());
    }
    return size + tensors * kTypicalTensorBytes;
  }

  std::string BlobName(std::uint32_t blob) const { return blobs_[blob]->pin.id.ToHex(); }

  Status CheckRoom(std::uint64_t size) const {
    if (encoder_.HasRoom(size)) return Status();
    return MakeError(Code::kLimitExceeded, "the index passes its limit of ",
                     limits_.index_size_max_bytes, " bytes");
  }

  Status AddRawBytes(std::uint64_t bytes) {
    const auto sum = CheckedAdd(raw_bytes_, bytes);
    if (!sum) return InvalidArgument("the sum of all sizes does not fit 64 bits");
    raw_bytes_ = *sum;
    return Status();
  }

  Status CheckAgreement(const Entry<fb::Tensor>& a, const Entry<fb::Tensor>& b) const {
    const auto differs = [&](std::string_view what, const auto& in_a, const auto& in_b) {
      return InvalidArgument(what, " ", in_a, " in blob ", BlobName(a.blob), ", but ", in_b,
                             " in blob ", BlobName(b.blob));
    };
    const fb::Tensor& x = *a.table;
    const fb::Tensor& y = *b.table;
    if (x.dtype() != y.dtype()) {
      return differs("dtype", DTypeName(static_cast<DType>(x.dtype())),
                     DTypeName(static_cast<DType>(y.dtype())));
    }
    if (x.element_size() != y.element_size()) {
      return differs("element size", x.element_size(), y.element_size());
    }
    if (x.chunk_size_log2() != y.chunk_size_log2()) {
      return differs("chunk size", std::uint64_t{1} << x.chunk_size_log2(),
                     std::uint64_t{1} << y.chunk_size_log2());
    }
    const Numbers in_x = NumbersOf(x.shape());
    const Numbers in_y = NumbersOf(y.shape());
    if (std::equal(in_x.begin(), in_x.end(), in_y.begin(), in_y.end())) return Status();
    return differs("shape", ShapeToString(Shape(in_x.begin(), in_x.end())),
                   ShapeToString(Shape(in_y.begin(), in_y.end())));
  }

  Status AddTensor(const std::vector<Entry<fb::Tensor>>& entries) {
    const fb::Tensor& first = *entries[0].table;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      SEALPOINT_RETURN_IF_ERROR(CheckAgreement(entries[0], entries[i]));
    }
    const Numbers shape = NumbersOf(first.shape());
    SEALPOINT_RETURN_IF_ERROR(AddRawBytes(ElementCountOf(shape) * first.element_size()));
    GatherParts(entries, shape.size());
    const std::uint64_t numbers = shape.size() + parts_.size() * (2 * shape.size() + 3);
    SEALPOINT_RETURN_IF_ERROR(CheckRoom(kEntryOverheadBytes + first.name()->size() + 8 * numbers));
    EncodedGeometry geometry;
    if (!parts_.empty()) {
      SEALPOINT_ASSIGN_OR_RETURN(geometry, AddGeometry(shape));
    }
    refs_.clear();
    for (const Part& part : parts_) refs_.push_back(part.ref);
    encoder_.AddTensor({.name = TextOf(first.name()),
                        .shape = shape,
                        .dtype = first.dtype(),
                        .element_size = first.element_size(),
                        .chunk_size_log2 = first.chunk_size_log2()},
                       geometry, refs_, AddPlacement(entries));
    return Status();
  }

  // Fits 64 bits, since the manifests passed.
  static std::uint64_t ElementCountOf(Numbers shape) {
    std::uint64_t count = 1;
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    for (const std::uint64_t extent : shape) count *= extent;
    return count;
  }

  // Fills parts_ with the shards of all blobs, sorted by (box offset, box extent, run begin).
  void GatherParts(const std::vector<Entry<fb::Tensor>>& entries, std::size_t ndim) {
    parts_.clear();
    for (const Entry<fb::Tensor>& entry : entries) {
      const fb::BoxList* list = entry.table->boxes();
      if (list == nullptr) continue;
      const Numbers boxes = NumbersOf(list->boxes());
      const Numbers runs = NumbersOf(list->runs());
      std::size_t i = 0;
      for (const fb::ShardRef* ref : *entry.table->shards()) {
        Part part{.box = boxes.data() + 2 * i * ndim};
        const std::uint64_t elements = ElementCountOf(Numbers(part.box + ndim, ndim));
        part.run =
            runs.empty() ? Run{0, elements} : Run{.begin = runs[2 * i], .end = runs[2 * i + 1]};
        part.is_full = part.run == Run{0, elements};
        part.ref = fb::ShardRef(entry.blob, ref->first_record());
        parts_.push_back(part);
        ++i;
      }
    }
    const auto is_before = [ndim](const Part& a, const Part& b) {
      const auto [x, y] = std::mismatch(a.box, a.box + 2 * ndim, b.box);
      if (x != a.box + 2 * ndim) return *x < *y;
      return a.run < b.run;
    };
    if (!std::is_sorted(parts_.begin(), parts_.end(), is_before)) {
      std::sort(parts_.begin(), parts_.end(), is_before);
    }
  }

  // Equal geometries, which the layers of a model have, are judged and stored once.
  Result<EncodedGeometry> AddGeometry(Numbers shape) {
    FillGeometryKey(shape);
    const auto found = geometries_.find(key_);
    if (found != geometries_.end()) return found->second;
    FillRegions(shape.size());
    shape_.assign(shape.begin(), shape.end());
    const std::span<const Region> regions(regions_.data(), parts_.size());
    EncodedGeometry geometry;
    // Cells are numbered row-major, which is the order of their offsets: the order of the parts.
    if (const auto match = MatchGrid(shape_, regions)) {
      geometry = encoder_.AddGrid(match->grid);
    } else {
      SEALPOINT_RETURN_IF_ERROR(CheckTiling(regions));
      geometry = AddBoxList(shape.size());
    }
    geometries_.emplace(key_, geometry);
    return geometry;
  }

  void FillGeometryKey(Numbers shape) {
    key_.assign(shape.begin(), shape.end());
    for (const Part& part : parts_) key_.insert(key_.end(), part.box, part.box + 2 * shape.size());
    if (std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.is_full; })) return;
    for (const Part& part : parts_) {
      key_.push_back(part.run.begin);
      key_.push_back(part.run.end);
    }
  }

  // Regions of earlier tensors lend their memory.
  void FillRegions(std::size_t ndim) {
    if (regions_.size() < parts_.size()) regions_.resize(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      regions_[i].box.offset.assign(part.box, part.box + ndim);
      regions_[i].box.extent.assign(part.box + ndim, part.box + 2 * ndim);
      regions_[i].run = part.run;
    }
  }

  Status CheckTiling(std::span<const Region> regions) const {
    if (regions.size() > limits_.box_list_shard_count_max) {
      return MakeError(Code::kLimitExceeded, regions.size(),
                       " shards that form no grid, the limit is ",
                       limits_.box_list_shard_count_max);
    }
    SEALPOINT_ASSIGN_OR_RETURN(
        const std::optional<TilingFault> fault,
        FindTilingFault(shape_, regions, TilingCornerCountMax(limits_, regions.size())));
    if (!fault) return Status();
    const std::string element = ShapeToString(fault->element);
    if (fault->times_covered == 0) {
      return InvalidArgument("no shard holds element ", element, " of shape ",
                             ShapeToString(shape_));
    }
    std::string holders;
    for (const std::size_t i : fault->holders) {
      holders += StrCat(holders.empty() ? "" : " and ", regions[i].ToString(), " in blob ",
                        BlobName(parts_[i].ref.blob()));
    }
    return InvalidArgument("element ", element, " lies in ", fault->times_covered,
                           " shards: ", holders);
  }

  EncodedGeometry AddBoxList(std::size_t ndim) {
    // The key is the shape, then the boxes, then the runs where not all are full.
    const Numbers key(key_);
    const std::size_t boxes_size = parts_.size() * 2 * ndim;
    return encoder_.AddBoxList(key.subspan(ndim, boxes_size), key.subspan(ndim + boxes_size));
  }

  flatbuffers::Offset<FbStrings> AddPlacement(const std::vector<Entry<fb::Tensor>>& entries) {
    for (const Entry<fb::Tensor>& entry : entries) {
      if (entry.table->placement() == nullptr || entry.table->placement()->size() == 0) continue;
      std::vector<std::string> texts;
      for (const flatbuffers::String* text : *entry.table->placement()) {
        texts.emplace_back(TextOf(text));
      }
      return encoder_.AddPlacement(texts);
    }
    return 0;
  }

  Status AddObject(const std::vector<Entry<fb::Object>>& entries) {
    if (entries.size() > 1) {
      return InvalidArgument("the object is in blob ", BlobName(entries[0].blob), " and in blob ",
                             BlobName(entries[1].blob));
    }
    const fb::Object& object = *entries[0].table;
    SEALPOINT_RETURN_IF_ERROR(AddRawBytes(object.size()));
    SEALPOINT_RETURN_IF_ERROR(CheckRoom(kEntryOverheadBytes + object.name()->size()));
    fb::ShardRef ref;
    if (object.size() != 0) ref = fb::ShardRef(entries[0].blob, object.shard()->first_record());
    encoder_.AddObject(TextOf(object.name()), TextOf(object.media_type()), object.size(), ref,
                       object.chunk_size_log2());
    return Status();
  }

  Result<Bytes> Finish(const IndexFacts& facts) {
    std::uint64_t size = blobs_.size() * kEntryOverheadBytes;
    for (const auto& [name, extent] : facts.mesh) size += kEntryOverheadBytes + name.size();
    for (const auto& [key, value] : facts.provenance) {
      size += kEntryOverheadBytes + key.size() + value.size();
    }
    SEALPOINT_RETURN_IF_ERROR(CheckRoom(size));
    const auto tensors = encoder_.FinishTensors();
    const auto objects = encoder_.FinishObjects();
    const auto blobs = AddBlobs();
    const auto mesh = AddMesh(facts);
    const auto provenance = AddProvenance(facts);
    auto& builder = encoder_.builder();
    builder.Finish(fb::CreateIndex(builder, tensors, objects, blobs,
                                   static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128),
                                   facts.created_unix_ns, raw_bytes_, mesh, provenance),
                   kIndexIdentifier);
    return encoder_.TakeBytes();
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Blob>>> AddBlobs() {
    auto& builder = encoder_.builder();
    std::vector<flatbuffers::Offset<fb::Blob>> tables;
    for (const BlobContribution* blob : blobs_) {
      const BlobPin& pin = blob->pin;
      const fb::Bits128 id = BitsOf(pin.id);
      const fb::Bits128 group_list_digest = BitsOf(pin.group_list_digest);
      const fb::Bits128 trailer_digest = BitsOf(pin.trailer_digest);
      tables.push_back(fb::CreateBlob(builder, &id, pin.file_size, pin.table_offset,
                                      pin.record_count, pin.shard_count, &group_list_digest,
                                      &trailer_digest));
    }
    return builder.CreateVector(tables.data(), tables.size());
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::MeshAxis>>> AddMesh(
      const IndexFacts& facts) {
    auto& builder = encoder_.builder();
    std::vector<flatbuffers::Offset<fb::MeshAxis>> tables;
    for (const auto& [name, size] : facts.mesh) {
      const auto text = builder.CreateString(name.data(), name.size());
      tables.push_back(fb::CreateMeshAxis(builder, text, size));
    }
    return builder.CreateVector(tables.data(), tables.size());
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ProvenanceEntry>>> AddProvenance(
      const IndexFacts& facts) {
    auto& builder = encoder_.builder();
    auto entries = facts.provenance;
    std::sort(entries.begin(), entries.end());
    std::vector<flatbuffers::Offset<fb::ProvenanceEntry>> tables;
    for (const auto& [key, value] : entries) {
      const auto fb_key = builder.CreateString(key.data(), key.size());
      const auto fb_value = builder.CreateString(value.data(), value.size());
      tables.push_back(fb::CreateProvenanceEntry(builder, fb_key, fb_value));
    }
    return builder.CreateVector(tables.data(), tables.size());
  }

  std::vector<const BlobContribution*> blobs_;  // by id
  const Limits& limits_;
  ContentsEncoder encoder_;
  std::uint64_t raw_bytes_ = 0;
  NumbersMap<EncodedGeometry> geometries_;
  // Of the tensor at hand.
  std::vector<Part> parts_;
  std::vector<Region> regions_;
  Shape shape_;
  std::vector<std::uint64_t> key_;
  std::vector<fb::ShardRef> refs_;
};

}  // namespace

Result<Bytes> EncodeIndex(std::span<const BlobContribution> blobs, const IndexFacts& facts,
                          const Limits& limits) {
  if (blobs.size() > limits.blob_count_max) {
    return MakeError(Code::kLimitExceeded, blobs.size(), " blobs, the limit is ",
                     limits.blob_count_max);
  }
  std::vector<const BlobContribution*> sorted;
  std::uint64_t shards = 0;
  for (const BlobContribution& blob : blobs) {
    sorted.push_back(&blob);
    shards += blob.manifest->total_shard_count();
  }
  if (shards > limits.shard_count_max) {
    return MakeError(Code::kLimitExceeded, shards, " shards, the limit is ",
                     limits.shard_count_max);
  }
  std::sort(sorted.begin(), sorted.end(), [](const BlobContribution* a, const BlobContribution* b) {
    return a->pin.id < b->pin.id;
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1]->pin.id != sorted[i]->pin.id) continue;
    return InvalidArgument("blob ", sorted[i]->pin.id.ToHex(), " is given twice");
  }
  return IndexMerger(std::move(sorted), limits).Merge(facts);
}

}  // namespace sealpoint::internal
