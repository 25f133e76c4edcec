// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/metadata/verify_metadata.h"

namespace sealpoint::internal::metadata {
namespace {

// The schema has three levels of tables: index or manifest, tensor, geometry.
constexpr flatbuffers::uoffset_t kTableDepthMax = 8;
// A table has a 4-byte offset to its vtable, and at least one 4-byte offset refers to it. That
// bounds the tables of an honest buffer; the verifier's work is bounded by this number of visits.
constexpr std::uint64_t kBytesPerTable = 8;
constexpr std::size_t kBufferAlignment = 8;

// The FlatBuffers verifier follows each string of each placement, and any number of tensors may
// share one vector of strings: without a bound its work would grow with the square of the buffer,
// which is an easy way to hang a reader. These two types visit the same tables first, but look at
// the length of the placements only.
struct PlacementOfTensor : private flatbuffers::Table {
  bool Verify(flatbuffers::Verifier& verifier) const {
    if (!VerifyTableStart(verifier)) return false;
    if (!VerifyOffset(verifier, fb::Tensor::VT_PLACEMENT)) return false;
    const auto* placement = GetPointer<const FbStrings*>(fb::Tensor::VT_PLACEMENT);
    return verifier.VerifyVector(placement) &&
           (placement == nullptr || placement->size() <= kPlacementCountMax) && verifier.EndTable();
  }
};
struct PlacementsOfRoot : private flatbuffers::Table {
  bool Verify(flatbuffers::Verifier& verifier) const {
    if (!VerifyTableStart(verifier)) return false;
    if (!VerifyOffset(verifier, fb::Index::VT_TENSORS)) return false;
    const auto* tensors =
        GetPointer<const flatbuffers::Vector<flatbuffers::Offset<PlacementOfTensor>>*>(
            fb::Index::VT_TENSORS);
    return verifier.VerifyVector(tensors) && verifier.VerifyVectorOfTables(tensors) &&
           verifier.EndTable();
  }
};

// As fb::Index does, but for the base: without its bit that is an unknown field, and never
// followed.
struct IndexWithoutBase : private flatbuffers::Table {
  template <typename T>
  bool VerifyTables(flatbuffers::Verifier& verifier, flatbuffers::voffset_t field) const {
    const auto* tables = GetPointer<const flatbuffers::Vector<flatbuffers::Offset<T>>*>(field);
    return VerifyOffsetRequired(verifier, field) && verifier.VerifyVector(tables) &&
           verifier.VerifyVectorOfTables(tables);
  }
  bool Verify(flatbuffers::Verifier& verifier) const {
    return VerifyTableStart(verifier) &&
           VerifyTables<fb::Tensor>(verifier, fb::Index::VT_TENSORS) &&
           VerifyTables<fb::Object>(verifier, fb::Index::VT_OBJECTS) &&
           VerifyTables<fb::Blob>(verifier, fb::Index::VT_BLOBS) &&
           VerifyField<std::uint16_t>(verifier, fb::Index::VT_DIGEST_ALGORITHM, 2) &&
           VerifyField<std::uint64_t>(verifier, fb::Index::VT_CREATED_UNIX_NS, 8) &&
           VerifyField<std::uint64_t>(verifier, fb::Index::VT_RAW_BYTES, 8) &&
           VerifyTables<fb::MeshAxis>(verifier, fb::Index::VT_MESH) &&
           VerifyTables<fb::ProvenanceEntry>(verifier, fb::Index::VT_PROVENANCE) &&
           VerifyOffset(verifier, fb::Index::VT_ATTRIBUTES) &&
           verifier.VerifyVector(GetPointer<const FbBytes*>(fb::Index::VT_ATTRIBUTES)) &&
           verifier.EndTable();
  }
};

flatbuffers::Verifier MakeVerifier(ByteSpan buffer) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kTableDepthMax;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(buffer.size() / kBytesPerTable);
  options.check_alignment = true;
  return flatbuffers::Verifier(reinterpret_cast<const std::uint8_t*>(buffer.data()), buffer.size(),
                               options);
}

// The pass over the placements must come first: it is what bounds the second one.
bool PassesVerifier(MetadataKind kind, ByteSpan buffer, bool may_have_base) {
  if (!MakeVerifier(buffer).VerifyBuffer<PlacementsOfRoot>(nullptr)) return false;
  flatbuffers::Verifier verifier = MakeVerifier(buffer);
  if (kind == MetadataKind::kManifest) {
    return verifier.VerifyBuffer<fb::Manifest>(kManifestIdentifier);
  }
  return may_have_base ? verifier.VerifyBuffer<fb::Index>(kIndexIdentifier)
                       : verifier.VerifyBuffer<IndexWithoutBase>(kIndexIdentifier);
}

// True if a table has the field `unannounced`, or one after the last one that this version knows.
bool HasUnknownField(const void* table, flatbuffers::voffset_t last_known,
                     flatbuffers::voffset_t unannounced) {
  const auto* fields = static_cast<const flatbuffers::Table*>(table);
  if (unannounced != 0 && fields->GetOptionalFieldOffset(unannounced) != 0) return true;
  const std::uint8_t* vtable = fields->GetVTable();
  const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  for (std::size_t slot = last_known + sizeof(size); slot < size; slot += sizeof(size)) {
    if (flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + slot) != 0) return true;
  }
  return false;
}

class FieldVerifier {
 public:
  explicit FieldVerifier(const VerifyInput& input) : input_(input) {}

  // A compat bit may announce facts, but never which elements a shard holds: the tables of a
  // geometry have known fields only, whatever the header says.
  Status CheckGeometry(const void* table, flatbuffers::voffset_t last_known, std::string_view what,
                       flatbuffers::voffset_t unannounced = 0) const {
    if (!HasUnknownField(table, last_known, unannounced)) return {};
    return input_.Fault(Code::kUnsupported, "R-IDX-03", table, "a ", what,
                        " has a field that this version does not know");
  }

  // `unannounced`: a field before the last known one that the header does not announce; 0 if none.
  Status CheckTable(const void* table, flatbuffers::voffset_t last_known, std::string_view what,
                    flatbuffers::voffset_t unannounced = 0) const {
    if (input_.announced.unknown) return {};
    return CheckGeometry(table, last_known, what, unannounced);
  }

  template <typename Tables>
  Status CheckTables(const Tables& tables, flatbuffers::voffset_t last_known,
                     std::string_view what) const {
    for (const auto* table : tables) {
      SEALPOINT_RETURN_IF_ERROR(CheckTable(table, last_known, what));
    }
    return {};
  }

  // The FlatBuffers verifier checks the alignment of a vector's length, not that of its numbers,
  // which NumbersOf reads in place.
  Status CheckAlignment(const FbNumbers* vector) const {
    if (vector == nullptr || vector->size() == 0) return {};
    const auto at = reinterpret_cast<std::uintptr_t>(vector->Data());
    if (at % alignof(std::uint64_t) == 0) return {};
    return input_.Corrupt("R-IDX-02", vector, "a vector of 64-bit numbers is misaligned");
  }

  Status CheckTensor(const fb::Tensor& tensor) const {
    const AnnouncedFields& announced = input_.announced;
    const auto last_known = announced.attributes     ? fb::Tensor::VT_ATTRIBUTES
                            : announced.fingerprints ? fb::Tensor::VT_FINGERPRINT
                                                     : fb::Tensor::VT_PLACEMENT;
    SEALPOINT_RETURN_IF_ERROR(CheckTable(
        &tensor, last_known, "tensor",
        announced.fingerprints ? flatbuffers::voffset_t{0} : fb::Tensor::VT_FINGERPRINT));
    SEALPOINT_RETURN_IF_ERROR(CheckAlignment(tensor.shape()));
    if (const fb::Grid* grid = tensor.grid()) {
      SEALPOINT_RETURN_IF_ERROR(CheckGeometry(grid, fb::Grid::VT_RUN_CUTS, "grid"));
      SEALPOINT_RETURN_IF_ERROR(CheckAlignment(grid->cuts()));
      SEALPOINT_RETURN_IF_ERROR(CheckAlignment(grid->run_cuts()));
    }
    if (const fb::BoxList* list = tensor.boxes()) {
      SEALPOINT_RETURN_IF_ERROR(CheckGeometry(list, fb::BoxList::VT_RUNS, "box list"));
      SEALPOINT_RETURN_IF_ERROR(CheckAlignment(list->boxes()));
      SEALPOINT_RETURN_IF_ERROR(CheckAlignment(list->runs()));
    }
    return {};
  }

  Status CheckIndex(const fb::Index& index) const {
    const bool may_have_base = input_.announced.may_have_base();
    const auto last_known = input_.announced.attributes ? fb::Index::VT_ATTRIBUTES
                            : may_have_base             ? fb::Index::VT_BASE
                                                        : fb::Index::VT_PROVENANCE;
    SEALPOINT_RETURN_IF_ERROR(
        CheckTable(&index, last_known, "index",
                   may_have_base ? flatbuffers::voffset_t{0} : fb::Index::VT_BASE));
    if (may_have_base && index.base() != nullptr) {
      SEALPOINT_RETURN_IF_ERROR(CheckTable(index.base(), fb::Base::VT_DEPTH, "base"));
    }
    SEALPOINT_RETURN_IF_ERROR(CheckTables(*index.blobs(), fb::Blob::VT_TRAILER_DIGEST, "blob"));
    SEALPOINT_RETURN_IF_ERROR(CheckTables(*index.mesh(), fb::MeshAxis::VT_SIZE, "mesh axis"));
    return CheckTables(*index.provenance(), fb::ProvenanceEntry::VT_VALUE, "provenance entry");
  }

 private:
  const VerifyInput& input_;
};

}  // namespace

Status VerifyBuffer(MetadataKind kind, ByteSpan buffer, const Limits& limits,
                    const AnnouncedFields& announced) {
  // Without this check only an assertion inside of the FlatBuffers verifier would look at the size.
  const std::uint64_t size_max = std::min(
      format::kFlatBufferSizeMax,
      kind == MetadataKind::kIndex ? limits.index_size_max_bytes : limits.manifest_size_max_bytes);
  if (buffer.size() > size_max) {
    return RuleError(Code::kLimitExceeded, "R-IDX-01", "FlatBuffer has ", buffer.size(),
                     " bytes, the limit is ", size_max);
  }
  if (reinterpret_cast<std::uintptr_t>(buffer.data()) % kBufferAlignment != 0) {
    return InvalidArgument("memory of a FlatBuffer must be 8-byte aligned");
  }
  if (!PassesVerifier(kind, buffer, announced.may_have_base())) {
    return RuleError(Code::kCorrupt, "R-IDX-02",
                     kind == MetadataKind::kIndex ? "not a well-formed index FlatBuffer"
                                                  : "not a well-formed manifest FlatBuffer");
  }
  return {};
}

Status VerifyFields(const VerifyInput& input) {
  const FieldVerifier verifier(input);
  if (input.index != nullptr) {
    SEALPOINT_RETURN_IF_ERROR(verifier.CheckIndex(*input.index));
  } else {
    SEALPOINT_RETURN_IF_ERROR(
        verifier.CheckTable(input.manifest, fb::Manifest::VT_OBJECTS, "manifest"));
  }
  SEALPOINT_RETURN_IF_ERROR(
      verifier.CheckTables(input.objects(), fb::Object::VT_CHUNK_SIZE_LOG2, "object"));
  for (const fb::Tensor* tensor : input.tensors()) {
    SEALPOINT_RETURN_IF_ERROR(verifier.CheckTensor(*tensor));
  }
  return {};
}

}  // namespace sealpoint::internal::metadata
