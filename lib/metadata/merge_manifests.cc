// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/merge_manifests.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/metadata/index_encoder.h"
#include "lib/metadata/tensor_merger.h"

namespace sealpoint::internal::metadata {
namespace {

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

// A k-way merge of the entries of all manifests, each of which is sorted by name: a heap holds the
// next entry of each manifest. Entries of one name come in the order of their blobs, on which the
// bytes of the index depend.
template <typename Table>
class NameMerger {
 public:
  explicit NameMerger(std::span<const BlobContribution* const> blobs) {
    for (std::uint32_t i = 0; i < blobs.size(); ++i) {
      const auto* tables =
          VectorOf(MetadataTables::ManifestOf(*blobs[i]->manifest), static_cast<Table*>(nullptr));
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

// Merges the manifests of all blobs name by name.
class ManifestMerger {
 public:
  ManifestMerger(std::vector<const BlobContribution*> blobs, const Limits& limits)
      : blobs_(std::move(blobs)),
        merger_(limits, [this](std::uint32_t blob) { return BlobName(blob); }),
        encoder_(SizeHint(), limits) {}

  Result<Bytes> Merge(std::span<const BlobPin> pins, const IndexAttributes& attributes) {
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
      if (!status.ok()) return std::move(status).AtObject(TextOf(object[0].table->name()));
    }
    return encoder_.Finish(pins, attributes);
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

  TensorFields FieldsOf(const Entry<fb::Tensor>& entry) const {
    const fb::Tensor& tensor = *entry.table;
    const TensorView view = MetadataTables::ViewOf(*blobs_[entry.blob]->manifest, tensor);
    return {.name = TextOf(tensor.name()),
            .shape = NumbersOf(tensor.shape()),
            .dtype = tensor.dtype(),
            .element_size = tensor.element_size(),
            .chunk_size_log2 = tensor.chunk_size_log2(),
            .fingerprint = view.fingerprint(),
            .attributes = view.attributes()};
  }

  Status AddTensor(const std::vector<Entry<fb::Tensor>>& entries) {
    merger_.Begin(FieldsOf(entries[0]), entries[0].blob);
    for (std::size_t i = 1; i < entries.size(); ++i) {
      SEALPOINT_RETURN_IF_ERROR(merger_.Join(FieldsOf(entries[i]), entries[i].blob));
    }
    for (const Entry<fb::Tensor>& entry : entries) AddShards(entry);
    SEALPOINT_ASSIGN_OR_RETURN(const MergedTensor merged, merger_.Finish());
    return encoder_.AddTensor(merged, PlacementOf(entries));
  }

  void AddShards(const Entry<fb::Tensor>& entry) {
    const fb::BoxList* list = entry.table->boxes();
    if (list == nullptr) return;
    const std::size_t box_size = std::size_t{2} * entry.table->shape()->size();
    const Numbers boxes = NumbersOf(list->boxes());
    const Numbers runs = NumbersOf(list->runs());
    std::size_t i = 0;
    for (const fb::ShardRef* ref : *entry.table->shards()) {
      std::optional<Run> run;
      if (!runs.empty()) run = Run{.begin = runs[2 * i], .end = runs[2 * i + 1]};
      merger_.AddShard(boxes.data() + i * box_size, run,
                       fb::ShardRef(entry.blob, ref->first_record()));
      ++i;
    }
  }

  // The placement of the first blob that has one.
  static std::vector<std::string> PlacementOf(const std::vector<Entry<fb::Tensor>>& entries) {
    std::vector<std::string> texts;
    for (const Entry<fb::Tensor>& entry : entries) {
      if (entry.table->placement() == nullptr || entry.table->placement()->size() == 0) continue;
      for (const flatbuffers::String* text : *entry.table->placement()) {
        texts.emplace_back(TextOf(text));
      }
      break;
    }
    return texts;
  }

  Status AddObject(const std::vector<Entry<fb::Object>>& entries) {
    if (entries.size() > 1) {
      return InvalidArgument("the object is in blob ", BlobName(entries[0].blob), " and in blob ",
                             BlobName(entries[1].blob));
    }
    const fb::Object& object = *entries[0].table;
    return encoder_.AddObject(
        {.name = TextOf(object.name()),
         .media_type = TextOf(object.media_type()),
         .size = object.size(),
         .shard = fb::ShardRef(entries[0].blob, object.shard()->first_record()),
         .chunk_size_log2 = object.chunk_size_log2()});
  }

  const std::vector<const BlobContribution*> blobs_;  // by id
  TensorMerger merger_;
  IndexEncoder encoder_;
};

}  // namespace

Result<Bytes> EncodeIndex(std::span<const BlobContribution> blobs,
                          const IndexAttributes& attributes, const Limits& limits) {
  std::vector<const BlobContribution*> sorted;
  std::uint64_t shards = 0;
  for (const BlobContribution& blob : blobs) {
    sorted.push_back(&blob);
    shards += blob.manifest->total_shard_count();
  }
  std::sort(sorted.begin(), sorted.end(), [](const BlobContribution* a, const BlobContribution* b) {
    return a->pin.id < b->pin.id;
  });
  std::vector<BlobPin> pins;
  pins.reserve(sorted.size());
  for (const BlobContribution* blob : sorted) pins.push_back(blob->pin);
  SEALPOINT_RETURN_IF_ERROR(CheckPins(pins, limits));
  if (shards > limits.shard_count_max) {
    return MakeError(Code::kLimitExceeded, "index has ", shards, " shards, the limit is ",
                     limits.shard_count_max);
  }
  return ManifestMerger(std::move(sorted), limits).Merge(pins, attributes);
}

}  // namespace sealpoint::internal::metadata
