// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/metadata.h"

#include "lib/base/macros.h"
#include "lib/metadata/generated_types.h"
#include "lib/metadata/verify_metadata.h"

namespace sealpoint::internal::metadata {
namespace {

using FbTensors = flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>;
using FbObjects = flatbuffers::Vector<flatbuffers::Offset<fb::Object>>;

const fb::Index& AsIndex(const void* root) { return *static_cast<const fb::Index*>(root); }
const fb::Manifest& AsManifest(const void* root) { return *static_cast<const fb::Manifest*>(root); }

const FbTensors& TensorsOf(MetadataKind kind, const void* root) {
  return kind == MetadataKind::kIndex ? *AsIndex(root).tensors() : *AsManifest(root).tensors();
}
const FbObjects& ObjectsOf(MetadataKind kind, const void* root) {
  return kind == MetadataKind::kIndex ? *AsIndex(root).objects() : *AsManifest(root).objects();
}

flatbuffers::uoffset_t At(std::size_t i) { return static_cast<flatbuffers::uoffset_t>(i); }

// Tables sorted by name.
template <typename Tables>
std::optional<std::size_t> FindByName(const Tables& tables, std::string_view name) {
  std::size_t begin = 0;
  std::size_t end = tables.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    const int order = TextOf(tables.Get(At(middle))->name()).compare(name);
    if (order == 0) return middle;
    if (order < 0) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return std::nullopt;
}

}  // namespace

struct Metadata::DecodeOptions {
  const Limits& limits;
  AnnouncedFields announced{};
  ManifestCounts counts{};  // of a manifest
};

Result<Metadata> Metadata::Decode(MetadataKind kind, std::shared_ptr<const Bytes> owner,
                                  ByteSpan buffer, const Limits& limits,
                                  const AnnouncedFields& announced) {
  if (kind == MetadataKind::kManifest) {
    return InvalidArgument("a manifest is verified together with the counts of its blob");
  }
  return DecodeAny(kind, std::move(owner), buffer, {.limits = limits, .announced = announced});
}

Result<Metadata> Metadata::DecodeManifest(std::shared_ptr<const Bytes> owner, ByteSpan buffer,
                                          ManifestCounts counts, const Limits& limits,
                                          const AnnouncedFields& announced) {
  return DecodeAny(MetadataKind::kManifest, std::move(owner), buffer,
                   {.limits = limits, .announced = announced, .counts = counts});
}

Result<Metadata> Metadata::DecodeAny(MetadataKind kind, std::shared_ptr<const Bytes> owner,
                                     ByteSpan buffer, const DecodeOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(VerifyBuffer(kind, buffer, options.limits, options.announced));
  VerifyInput input{.buffer = buffer,
                    .limits = options.limits,
                    .announced = options.announced,
                    .manifest_counts = options.counts};
  Metadata metadata;
  metadata.kind_ = kind;
  metadata.owner_ = std::move(owner);
  metadata.has_fingerprints_ = options.announced.fingerprints;
  metadata.has_attributes_ = options.announced.attributes;
  metadata.may_have_base_ = options.announced.may_have_base();
  if (kind == MetadataKind::kIndex) {
    input.index = flatbuffers::GetRoot<fb::Index>(buffer.data());
    metadata.root_ = input.index;
  } else {
    input.manifest = flatbuffers::GetRoot<fb::Manifest>(buffer.data());
    metadata.root_ = input.manifest;
  }
  SEALPOINT_RETURN_IF_ERROR(VerifyFields(input));
  SEALPOINT_ASSIGN_OR_RETURN(metadata.total_shard_count_, VerifyMeaning(input));
  SEALPOINT_RETURN_IF_ERROR(VerifyAttributes(input));
  return metadata;
}

std::size_t Metadata::tensor_count() const { return TensorsOf(kind_, root_).size(); }

TensorView Metadata::tensor(std::size_t i) const {
  return {TensorsOf(kind_, root_).Get(At(i)), has_fingerprints_, has_attributes_};
}

std::optional<std::size_t> Metadata::FindTensor(std::string_view name) const {
  return FindByName(TensorsOf(kind_, root_), name);
}

std::size_t Metadata::object_count() const { return ObjectsOf(kind_, root_).size(); }

ObjectView Metadata::object(std::size_t i) const {
  return ObjectView(ObjectsOf(kind_, root_).Get(At(i)));
}

std::optional<std::size_t> Metadata::FindObject(std::string_view name) const {
  return FindByName(ObjectsOf(kind_, root_), name);
}

std::size_t Metadata::blob_count() const {
  return kind_ == MetadataKind::kIndex ? AsIndex(root_).blobs()->size() : 0;
}

BlobPin Metadata::blob(std::size_t i) const {
  const fb::Blob& blob = *AsIndex(root_).blobs()->Get(At(i));
  return BlobPin{.id = IdOf<BlobId>(blob.id()),
                 .file_size = blob.file_size(),
                 .table_offset = blob.table_offset(),
                 .record_count = blob.record_count(),
                 .shard_count = blob.shard_count(),
                 .group_list_digest = IdOf<Digest>(blob.group_list_digest()),
                 .trailer_digest = IdOf<Digest>(blob.trailer_digest())};
}

std::optional<BaseRef> Metadata::base() const {
  if (kind_ == MetadataKind::kManifest || !may_have_base_) return std::nullopt;
  const fb::Base* const base = AsIndex(root_).base();
  return BaseRef{.attempt = IdOf<AttemptId>(base->attempt()),
                 .index_digest = IdOf<Digest>(base->index_digest()),
                 .step = base->step(),
                 .depth = base->depth()};
}

std::uint64_t Metadata::created_unix_ns() const {
  return kind_ == MetadataKind::kIndex ? AsIndex(root_).created_unix_ns() : 0;
}

std::uint64_t Metadata::raw_bytes() const {
  return kind_ == MetadataKind::kIndex ? AsIndex(root_).raw_bytes() : 0;
}

DigestAlgorithm Metadata::digest_algorithm() const {
  if (kind_ == MetadataKind::kManifest) return DigestAlgorithm{0};
  return static_cast<DigestAlgorithm>(AsIndex(root_).digest_algorithm());
}

std::vector<std::pair<std::string, std::uint32_t>> Metadata::mesh() const {
  std::vector<std::pair<std::string, std::uint32_t>> mesh;
  if (kind_ == MetadataKind::kManifest) return mesh;
  for (const fb::MeshAxis* axis : *AsIndex(root_).mesh()) {
    mesh.emplace_back(TextOf(axis->name()), axis->size());
  }
  return mesh;
}

std::vector<std::pair<std::string, std::string>> Metadata::provenance() const {
  std::vector<std::pair<std::string, std::string>> provenance;
  if (kind_ == MetadataKind::kManifest) return provenance;
  for (const fb::ProvenanceEntry* entry : *AsIndex(root_).provenance()) {
    provenance.emplace_back(TextOf(entry->key()), TextOf(entry->value()));
  }
  return provenance;
}

std::string_view Metadata::attributes() const {
  const bool may_have = kind_ == MetadataKind::kIndex && has_attributes_;
  return may_have ? TextOf(AsIndex(root_).attributes()) : std::string_view();
}

}  // namespace sealpoint::internal::metadata
