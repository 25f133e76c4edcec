// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/verify_metadata.h"

#include <bit>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/base/utf8.h"
#include "lib/format/constants.h"
#include "lib/metadata/grid_view.h"
#include "lib/metadata/record_coverage.h"

namespace sealpoint::internal::metadata {
namespace {

constexpr std::uint64_t kElementSizeMax = 256;
constexpr unsigned kChunkSizeLog2Min = 12;
constexpr unsigned kChunkSizeLog2Max = 27;
constexpr std::string_view kLimitRule = "R-IDX-04";

// Nothing if the product does not fit 64 bits. An extent of 0 makes it 0 whatever its dimension: a
// running product over [2^40, 2^40, 0] would overflow on the way, and the shape is legal.
std::optional<std::uint64_t> CountElements(Numbers shape) {
  std::optional<std::uint64_t> count = 1;
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
    if (count) count = CheckedMul(*count, extent);
  }
  return count;
}

// Checks the counts that bound all later work and memory (R-IDX-04), so it runs before anything is
// allocated or walked by them.
class CountVerifier {
 public:
  explicit CountVerifier(const VerifyInput& input) : input_(input) {}

  Status Run() const {
    const Limits& limits = input_.limits;
    SEALPOINT_RETURN_IF_ERROR(
        CheckCount("tensors", input_.tensors().size(), limits.tensor_count_max));
    SEALPOINT_RETURN_IF_ERROR(
        CheckCount("objects", input_.objects().size(), limits.object_count_max));
    if (input_.index != nullptr) {
      SEALPOINT_RETURN_IF_ERROR(
          CheckCount("blobs", input_.index->blobs()->size(), limits.blob_count_max));
    }
    std::uint64_t shards = 0;  // an empty object has none (R-IDX-22)
    for (const fb::Object* object : input_.objects()) shards += object->size() != 0 ? 1u : 0u;
    for (const fb::Tensor* tensor : input_.tensors()) shards += tensor->shards()->size();
    SEALPOINT_RETURN_IF_ERROR(CheckCount("shards", shards, limits.shard_count_max));
    return CheckCount("records", CountRecords(), limits.record_count_max);
  }

 private:
  Status CheckCount(std::string_view what, std::uint64_t count, std::uint64_t max) const {
    if (count <= max) return {};
    return RuleError(Code::kLimitExceeded, kLimitRule, count, " ", what, ", the limit is ", max);
  }

  std::uint64_t CountRecords() const {
    if (input_.index == nullptr) return input_.manifest_counts.record_count;
    std::uint64_t records = 0;
    for (const fb::Blob* blob : *input_.index->blobs()) records += blob->record_count();
    return records;
  }

  const VerifyInput& input_;
};

std::vector<std::uint32_t> RecordCounts(const VerifyInput& input) {
  if (input.index == nullptr) return {input.manifest_counts.record_count};
  std::vector<std::uint32_t> counts;
  counts.reserve(input.index->blobs()->size());
  for (const fb::Blob* blob : *input.index->blobs()) counts.push_back(blob->record_count());
  return counts;
}

// A box list that passed, with the shape and the number of shards for which it passed: the same
// list may be wrong for another tensor that shares it.
using CheckedList = std::tuple<const fb::BoxList*, const std::uint64_t*, std::size_t>;
constexpr std::size_t kCheckedListsMax = 4096;

// The semantic pass. Blobs come before tensors, because the record counts of the blobs bound the
// shards. The totals come last, because a record that belongs to no shard, and a wrong shard count,
// show only when all tensors and objects have taken their records. A reader may report any broken
// rule of this pass first (spec/reader-rules.md section 3); within one table the order below is
// that in which a later check relies on an earlier one.
class MeaningVerifier {
 public:
  explicit MeaningVerifier(const VerifyInput& input)
      : input_(input), records_(RecordCounts(input)) {}

  Result<std::uint64_t> Run() {
    if (input_.index != nullptr) {
      SEALPOINT_RETURN_IF_ERROR(CheckBase());
      SEALPOINT_RETURN_IF_ERROR(CheckProvenance());
      SEALPOINT_RETURN_IF_ERROR(CheckBlobs());
    }
    std::string_view previous;
    for (const fb::Tensor* tensor : input_.tensors()) {
      Status status = CheckTensor(*tensor, previous);
      if (!status.ok()) return std::move(status).AtTensor(PrintableName(tensor->name()));
      previous = TextOf(tensor->name());
    }
    previous = {};
    for (const fb::Object* object : input_.objects()) {
      Status status = CheckObject(*object, previous);
      if (!status.ok()) return std::move(status).AtObject(PrintableName(object->name()));
      previous = TextOf(object->name());
    }
    SEALPOINT_RETURN_IF_ERROR(CheckTotals());
    SEALPOINT_RETURN_IF_ERROR(CheckFingerprints());
    return records_.total_shard_count();
  }

 private:
  static std::string_view PrintableName(const flatbuffers::String* name) {
    const std::string_view text = TextOf(name);
    return text.size() <= kNameSizeMaxBytes && IsPrintableUtf8(text) ? text : std::string_view();
  }

  Status CheckText(const flatbuffers::String* text, std::uint64_t size_max,
                   std::string_view what) const {
    const std::string_view view = TextOf(text);
    if (!view.empty() && view.size() <= size_max && IsPrintableUtf8(view)) return {};
    return input_.Corrupt("R-IDX-05", text, what, " has ", view.size(), " bytes, expected 1 to ",
                          size_max, " bytes of UTF-8 without control characters");
  }

  // Names ascend strictly, so that no name is there twice and lookup by binary search is right. The
  // text comes first: a message quotes only names that are printable.
  Status CheckName(const flatbuffers::String* name, std::string_view previous,
                   std::string_view what) const {
    SEALPOINT_RETURN_IF_ERROR(CheckText(name, kNameSizeMaxBytes, what));
    if (previous < TextOf(name)) return {};
    return input_.Corrupt("R-IDX-06", name, what, " \"", TextOf(name), "\" does not sort after \"",
                          previous, "\", the one before it");
  }

  // R-DLT-01 and R-DLT-02.
  Status CheckBase() const {
    const fb::Base* const base = input_.announced.may_have_base() ? input_.index->base() : nullptr;
    const std::uint64_t bits = input_.announced.incompat & format::kDeltaFeatures;
    if (bits != (base == nullptr ? 0 : format::kDeltaFeatures)) {
      return input_.Corrupt("R-DLT-01", input_.index, "the index has ",
                            base == nullptr ? "no" : "a", " base, and the incompat bits ", bits,
                            ", expected ", base == nullptr ? 0 : format::kDeltaFeatures);
    }
    if (base == nullptr) return {};
    if (IdOf<AttemptId>(base->attempt()).is_zero() || base->depth() == 0 ||
        base->depth() > format::kDeltaDepthMax) {
      return input_.Corrupt("R-DLT-02", base, "the base is attempt ",
                            IdOf<AttemptId>(base->attempt()).ToHex(), " at depth ", base->depth(),
                            ", expected one that is not zero, at depth 1 to ",
                            format::kDeltaDepthMax);
    }
    return {};
  }

  Status CheckProvenance() const {
    for (const fb::MeshAxis* axis : *input_.index->mesh()) {
      SEALPOINT_RETURN_IF_ERROR(CheckText(axis->name(), kNameSizeMaxBytes, "mesh axis"));
    }
    std::string_view previous;
    for (const fb::ProvenanceEntry* entry : *input_.index->provenance()) {
      SEALPOINT_RETURN_IF_ERROR(CheckName(entry->key(), previous, "provenance key"));
      previous = TextOf(entry->key());
      const std::string_view value = TextOf(entry->value());
      if (value.size() > kProvenanceValueSizeMaxBytes || !IsUtf8(value)) {
        return input_.Corrupt("R-IDX-05", entry, "provenance value has ", value.size(),
                              " bytes, expected at most ", kProvenanceValueSizeMaxBytes,
                              " bytes of UTF-8");
      }
    }
    return {};
  }

  Status CheckBlobs() const {
    const fb::Index& index = *input_.index;
    BlobId previous;
    for (const fb::Blob* blob : *index.blobs()) {
      const BlobId id = IdOf<BlobId>(blob->id());
      if (id <= previous) {  // `previous` begins as zero, which so is refused as well
        return input_.Corrupt("R-IDX-07", blob, "blob id is ", id.ToHex(), ", expected above ",
                              previous.ToHex());
      }
      previous = id;
    }
    if (index.digest_algorithm() != static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128)) {
      return input_.Fault(Code::kUnsupported, "R-IDX-08", &index,
                          "digest algorithm of the index is ", index.digest_algorithm(),
                          ", this build reads ",
                          static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128));
    }
    for (const fb::Blob* blob : *index.blobs()) SEALPOINT_RETURN_IF_ERROR(CheckBlobLayout(*blob));
    return {};
  }

  Status CheckBlobLayout(const fb::Blob& blob) const {
    constexpr std::string_view kRule = "R-IDX-21";
    const std::uint64_t size = blob.file_size();
    if (size > input_.limits.blob_size_max_bytes) {
      return input_.Fault(Code::kLimitExceeded, kLimitRule, &blob, "blob has ", size,
                          " bytes, the limit is ", input_.limits.blob_size_max_bytes);
    }
    if (size % format::kFileAlignment != 0) {  // a size of 0 fails below: no room for the trailer
      return input_.Corrupt(kRule, &blob, "blob has ", size, " bytes, expected a multiple of ",
                            format::kFileAlignment);
    }
    const std::uint64_t table = blob.table_offset();
    if (table < format::kHeaderSize || table % format::kSectionAlignment != 0) {
      return input_.Corrupt(kRule, &blob, "table offset is ", table, ", expected a multiple of ",
                            format::kSectionAlignment, " from ", format::kHeaderSize, " on");
    }
    if (blob.record_count() == 0 && table != format::kHeaderSize) {
      return input_.Corrupt(kRule, &blob, "table offset is ", table, ", expected ",
                            format::kHeaderSize, " without a record");
    }
    const std::uint64_t groups = DivideRoundUp(blob.record_count(), format::kRecordsPerGroup);
    const std::uint64_t rest = AlignUp(groups * format::kDigestSize, format::kSectionAlignment) +
                               std::uint64_t{blob.record_count()} * format::kRecordSize +
                               format::kTrailerSize;
    if (!RangeFits(table, rest, size)) {
      return input_.Corrupt(kRule, &blob, blob.record_count(), " records at ", table,
                            " and the trailer do not fit a blob of ", size, " bytes");
    }
    return {};
  }

  Result<CheckedTensor> CheckNumbers(const fb::Tensor& tensor) const {
    const std::uint64_t element_size = tensor.element_size();
    const std::uint32_t registered = DTypeSizeBytes(static_cast<DType>(tensor.dtype()));
    if (tensor.dtype() == 0 || (registered != 0 && registered != element_size)) {
      return input_.Corrupt("R-IDX-09", &tensor, "dtype ", tensor.dtype(), " with elements of ",
                            element_size, " bytes");
    }
    if (!std::has_single_bit(element_size) || element_size > kElementSizeMax) {
      return input_.Fault(
          Code::kUnsupported, "R-IDX-24", &tensor, "dtype ", tensor.dtype(), " has elements of ",
          element_size, " bytes, this build reads those of a power of two up to ", kElementSizeMax);
    }
    SEALPOINT_RETURN_IF_ERROR(CheckChunkSize(&tensor, tensor.chunk_size_log2()));
    CheckedTensor checked{.table = &tensor,
                          .shape = NumbersOf(tensor.shape()),
                          .element_count = 0,
                          .element_size = element_size};
    if (checked.shape.size() > kNdimMax) {
      return input_.Corrupt("R-IDX-11", &tensor, "tensor has ", checked.shape.size(),
                            " dimensions, the limit is ", kNdimMax);
    }
    const auto elements = CountElements(checked.shape);
    if (!elements || !CheckedMul(*elements, element_size)) {
      return input_.Corrupt("R-IDX-11", &tensor, "size of the tensor does not fit 64 bits");
    }
    checked.element_count = *elements;
    return checked;
  }

  // An element has 256 bytes at most, and a power of two: it divides every chunk.
  Status CheckChunkSize(const void* where, unsigned log2) const {
    static_assert(kElementSizeMax <= std::uint64_t{1} << kChunkSizeLog2Min);
    if (log2 >= kChunkSizeLog2Min && log2 <= kChunkSizeLog2Max) return {};
    return input_.Corrupt("R-IDX-10", where, "chunk size is 2^", log2, ", expected 2^",
                          kChunkSizeLog2Min, " to 2^", kChunkSizeLog2Max);
  }

  Status AddRawBytes(const void* where, std::uint64_t bytes) {
    const auto sum = CheckedAdd(raw_bytes_, bytes);
    if (!sum) return input_.Corrupt("R-IDX-11", where, "sum of all sizes does not fit 64 bits");
    raw_bytes_ = *sum;
    return {};
  }

  // Remembers the placement that passed last: if tensors share one vector, checking it for each of
  // them would take time that grows with the square of the index.
  Status CheckPlacement(const fb::Tensor& tensor) {
    if (tensor.placement() == nullptr || tensor.placement() == checked_placement_) return {};
    for (const flatbuffers::String* text : *tensor.placement()) {
      SEALPOINT_RETURN_IF_ERROR(CheckText(text, kNameSizeMaxBytes, "placement"));
    }
    checked_placement_ = tensor.placement();
    return {};
  }

  Status CheckFingerprints() const {
    if (!input_.announced.fingerprints) return {};
    for (const fb::Tensor* tensor : input_.tensors()) {
      if (tensor->fingerprint() == nullptr) continue;
      // Only a tensor without elements has no shards (R-IDX-12).
      const std::uint64_t end = tensor->shards()->size() == 0 ? 1 : Fingerprint::kModulus;
      for (const std::uint64_t value : FingerprintValuesOf(*tensor->fingerprint())) {
        if (value < end) continue;
        return input_
            .Corrupt("R-FPR-01", tensor, "a value of the fingerprint is ", value,
                     ", expected below ", end)
            .AtTensor(TextOf(tensor->name()));
      }
    }
    return {};
  }

  Status CheckTensor(const fb::Tensor& tensor, std::string_view previous) {
    SEALPOINT_RETURN_IF_ERROR(CheckName(tensor.name(), previous, "tensor name"));
    SEALPOINT_RETURN_IF_ERROR(CheckPlacement(tensor));
    SEALPOINT_ASSIGN_OR_RETURN(const CheckedTensor checked, CheckNumbers(tensor));
    SEALPOINT_RETURN_IF_ERROR(AddRawBytes(&tensor, checked.element_count * checked.element_size));
    const std::uint64_t shards = tensor.shards()->size();
    const int geometries = (tensor.grid() != nullptr ? 1 : 0) + (tensor.boxes() != nullptr ? 1 : 0);
    if (checked.element_count == 0) {
      if (geometries == 0 && shards == 0) return {};
      return input_.Corrupt("R-IDX-12", &tensor, "empty tensor has ", geometries,
                            " geometries and ", shards, " shards, expected none");
    }
    if (geometries != 1 || shards == 0) {
      return input_.Corrupt("R-IDX-12", &tensor, "tensor has ", geometries, " geometries and ",
                            shards, " shards, expected 1 geometry and at least 1 shard");
    }
    // Each shard owns at least one record. Comparing the counts before looking at the geometry
    // bounds all work on it by the tables of the blobs, even if tensors share one vector of shards.
    const std::uint64_t left = records_.record_count() - records_.taken_count();
    if (shards > left) {
      return input_.Corrupt("R-IDX-20", &tensor, "tensor has ", shards, " shards, but only ", left,
                            " records are left");
    }
    return tensor.grid() != nullptr ? CheckGridTensor(checked) : CheckBoxListTensor(checked);
  }

  Status CheckGridTensor(const CheckedTensor& checked) {
    if (input_.manifest != nullptr) {
      return input_.Corrupt("R-IDX-13", checked.table, "tensor of a manifest has a grid");
    }
    SEALPOINT_RETURN_IF_ERROR(VerifyGrid(input_, checked));
    Status status;
    ForEachGridShard(checked.shape, *checked.table->grid(),
                     [&](std::uint64_t shard, std::uint64_t elements) {
                       return TakeShard(checked, shard, elements, &status);
                     });
    return status;
  }

  Status CheckBoxListTensor(const CheckedTensor& checked) {
    SEALPOINT_RETURN_IF_ERROR(CheckBoxListOnce(checked));
    const Numbers boxes = NumbersOf(checked.table->boxes()->boxes());
    const Numbers runs = NumbersOf(checked.table->boxes()->runs());
    const std::size_t ndim = checked.shape.size();
    Status status;
    for (std::size_t i = 0; i < checked.table->shards()->size(); ++i) {
      std::uint64_t elements = 1;
      if (runs.empty()) {
        for (std::size_t d = 0; d < ndim; ++d) elements *= boxes[(2 * i + 1) * ndim + d];
      } else {
        elements = runs[2 * i + 1] - runs[2 * i];
      }
      if (!TakeShard(checked, i, elements, &status)) return status;
    }
    return {};
  }

  // Tensors of equal geometry share its tables, as the layers of a model do, and the tiling check
  // is the dearest of all. The number of remembered lists is bounded, since a hostile index may
  // have a list per tensor.
  Status CheckBoxListOnce(const CheckedTensor& checked) {
    const CheckedList key(checked.table->boxes(), checked.shape.data(),
                          checked.table->shards()->size());
    if (checked_lists_.contains(key)) return {};
    SEALPOINT_RETURN_IF_ERROR(VerifyBoxList(input_, checked));
    if (checked_lists_.size() < kCheckedListsMax) checked_lists_.insert(key);
    return {};
  }

  bool TakeShard(const CheckedTensor& checked, std::uint64_t shard, std::uint64_t elements,
                 Status* status) {
    const std::uint64_t chunks = ChunkCount(elements * checked.element_size,
                                            std::uint64_t{1} << checked.table->chunk_size_log2());
    const auto at = static_cast<flatbuffers::uoffset_t>(shard);
    const fb::ShardRef* ref = checked.table->shards()->Get(at);
    const auto outcome = records_.Take(ref->blob(), ref->first_record(), chunks);
    if (outcome == RecordCoverage::Outcome::kTaken) return true;
    *status = RecordFault(outcome, *ref, chunks);
    return false;
  }

  Status RecordFault(RecordCoverage::Outcome outcome, const fb::ShardRef& ref,
                     std::uint64_t chunks) const {
    if (outcome == RecordCoverage::Outcome::kNoBlob) {
      return input_.Corrupt("R-IDX-19", &ref, "shard refers to blob ", ref.blob(),
                            ", expected below ",
                            input_.index != nullptr ? input_.index->blobs()->size() : 1);
    }
    return input_.Corrupt("R-IDX-20", &ref, "the ", chunks, " records of a shard from record ",
                          ref.first_record(), " of blob ", ref.blob(), " on ",
                          outcome == RecordCoverage::Outcome::kOutside
                              ? "exceed its table"
                              : "belong to another shard, too");
  }

  Status CheckObject(const fb::Object& object, std::string_view previous) {
    SEALPOINT_RETURN_IF_ERROR(CheckName(object.name(), previous, "object name"));
    SEALPOINT_RETURN_IF_ERROR(CheckText(object.media_type(), kMediaTypeSizeMaxBytes, "media type"));
    SEALPOINT_RETURN_IF_ERROR(CheckChunkSize(&object, object.chunk_size_log2()));
    SEALPOINT_RETURN_IF_ERROR(AddRawBytes(&object, object.size()));
    const fb::ShardRef& ref = *object.shard();
    if (object.size() == 0) {
      if (ref.blob() == 0 && ref.first_record() == 0) return {};
      return input_.Corrupt("R-IDX-22", &object, "empty object refers to record ",
                            ref.first_record(), " of blob ", ref.blob(), ", expected 0 of 0");
    }
    const std::uint64_t chunks =
        ChunkCount(object.size(), std::uint64_t{1} << object.chunk_size_log2());
    const auto outcome = records_.Take(ref.blob(), ref.first_record(), chunks);
    if (outcome == RecordCoverage::Outcome::kTaken) return {};
    return RecordFault(outcome, ref, chunks);
  }

  Status CheckTotals() const {
    if (const auto free = records_.FindFree()) {
      return RuleError(Code::kCorrupt, "R-IDX-20", "record ", free->number, " of blob ", free->blob,
                       " belongs to no shard");
    }
    if (input_.index == nullptr) {
      return CheckShardCount(input_.manifest, 0, input_.manifest_counts.shard_count);
    }
    for (std::uint32_t i = 0; i < input_.index->blobs()->size(); ++i) {
      const fb::Blob* blob = input_.index->blobs()->Get(i);
      SEALPOINT_RETURN_IF_ERROR(CheckShardCount(blob, i, blob->shard_count()));
    }
    if (input_.index->raw_bytes() != raw_bytes_) {
      return input_.Corrupt("R-IDX-23", input_.index, "raw_bytes is ", input_.index->raw_bytes(),
                            ", expected ", raw_bytes_, ", the sum over tensors and objects");
    }
    return {};
  }

  Status CheckShardCount(const void* where, std::size_t blob, std::uint32_t stated) const {
    if (records_.shard_count(blob) == stated) return {};
    return input_.Corrupt("R-IDX-21", where, "shard count of blob ", blob, " is ", stated,
                          ", expected ", records_.shard_count(blob));
  }

  const VerifyInput& input_;
  RecordCoverage records_;
  std::set<CheckedList> checked_lists_;
  std::uint64_t raw_bytes_ = 0;
  const FbStrings* checked_placement_ = nullptr;  // tensors mostly share one vector
};

}  // namespace

Result<std::uint64_t> VerifyMeaning(const VerifyInput& input) {
  SEALPOINT_RETURN_IF_ERROR(CountVerifier(input).Run());
  return MeaningVerifier(input).Run();
}

}  // namespace sealpoint::internal::metadata
