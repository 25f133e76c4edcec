// SPDX-License-Identifier: Apache-2.0
#include "lib/format/contents.h"

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/format/contents_fb.h"
#include "lib/format/contents_verify.h"

namespace sealpoint::internal {
namespace {

using FbTensors = flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>;
using FbObjects = flatbuffers::Vector<flatbuffers::Offset<fb::Object>>;

const fb::Index& AsIndex(const void* root) { return *static_cast<const fb::Index*>(root); }
const fb::Manifest& AsManifest(const void* root) { return *static_cast<const fb::Manifest*>(root); }

const FbTensors& TensorsOf(ContentsKind kind, const void* root) {
  return kind == ContentsKind::kIndex ? *AsIndex(root).tensors() : *AsManifest(root).tensors();
}
const FbObjects& ObjectsOf(ContentsKind kind, const void* root) {
  return kind == ContentsKind::kIndex ? *AsIndex(root).objects() : *AsManifest(root).objects();
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

std::uint64_t ChunkCount(std::uint64_t raw_size, std::uint64_t chunk_size) {
  return DivideRoundUp(raw_size, chunk_size);
}

Result<Contents> Contents::Decode(ContentsKind kind, std::shared_ptr<const Bytes> owner,
                                  ByteSpan buffer, const Limits& limits) {
  if (kind == ContentsKind::kManifest) {
    return InvalidArgument("a manifest is judged together with the counts of its blob");
  }
  return DecodeAny(kind, std::move(owner), buffer, {}, limits);
}

Result<Contents> Contents::DecodeManifest(std::shared_ptr<const Bytes> owner, ByteSpan buffer,
                                          ManifestCounts counts, const Limits& limits) {
  return DecodeAny(ContentsKind::kManifest, std::move(owner), buffer, counts, limits);
}

Result<Contents> Contents::DecodeAny(ContentsKind kind, std::shared_ptr<const Bytes> owner,
                                     ByteSpan buffer, ManifestCounts counts, const Limits& limits) {
  SEALPOINT_RETURN_IF_ERROR(VerifyBuffer(kind, buffer, limits));
  VerifyInput input{.buffer = buffer, .limits = limits, .manifest_counts = counts};
  Contents contents;
  contents.kind_ = kind;
  contents.owner_ = std::move(owner);
  if (kind == ContentsKind::kIndex) {
    input.index = flatbuffers::GetRoot<fb::Index>(buffer.data());
    contents.root_ = input.index;
  } else {
    input.manifest = flatbuffers::GetRoot<fb::Manifest>(buffer.data());
    contents.root_ = input.manifest;
  }
  SEALPOINT_RETURN_IF_ERROR(VerifyFields(input));
  SEALPOINT_ASSIGN_OR_RETURN(contents.total_shard_count_, VerifyMeaning(input));
  return contents;
}

std::size_t Contents::tensor_count() const { return TensorsOf(kind_, root_).size(); }

TensorView Contents::tensor(std::size_t i) const {
  return TensorView(TensorsOf(kind_, root_).Get(At(i)));
}

std::optional<std::size_t> Contents::FindTensor(std::string_view name) const {
  return FindByName(TensorsOf(kind_, root_), name);
}

std::size_t Contents::object_count() const { return ObjectsOf(kind_, root_).size(); }

ObjectView Contents::object(std::size_t i) const {
  return ObjectView(ObjectsOf(kind_, root_).Get(At(i)));
}

std::optional<std::size_t> Contents::FindObject(std::string_view name) const {
  return FindByName(ObjectsOf(kind_, root_), name);
}

std::size_t Contents::blob_count() const {
  return kind_ == ContentsKind::kIndex ? AsIndex(root_).blobs()->size() : 0;
}

BlobPin Contents::blob(std::size_t i) const {
  const fb::Blob& blob = *AsIndex(root_).blobs()->Get(At(i));
  return BlobPin{.id = IdOf(blob.id()),
                 .file_size = blob.file_size(),
                 .table_offset = blob.table_offset(),
                 .record_count = blob.record_count(),
                 .shard_count = blob.shard_count(),
                 .group_list_digest = IdOf(blob.group_list_digest()),
                 .trailer_digest = IdOf(blob.trailer_digest())};
}

std::uint64_t Contents::created_unix_ns() const {
  return kind_ == ContentsKind::kIndex ? AsIndex(root_).created_unix_ns() : 0;
}

std::uint64_t Contents::raw_bytes() const {
  return kind_ == ContentsKind::kIndex ? AsIndex(root_).raw_bytes() : 0;
}

DigestAlgorithm Contents::digest_algorithm() const {
  if (kind_ == ContentsKind::kManifest) return DigestAlgorithm{0};
  return static_cast<DigestAlgorithm>(AsIndex(root_).digest_algorithm());
}

std::vector<std::pair<std::string, std::uint32_t>> Contents::mesh() const {
  std::vector<std::pair<std::string, std::uint32_t>> mesh;
  if (kind_ == ContentsKind::kManifest) return mesh;
  for (const fb::MeshAxis* axis : *AsIndex(root_).mesh()) {
    mesh.emplace_back(TextOf(axis->name()), axis->size());
  }
  return mesh;
}

std::vector<std::pair<std::string, std::string>> Contents::provenance() const {
  std::vector<std::pair<std::string, std::string>> provenance;
  if (kind_ == ContentsKind::kManifest) return provenance;
  for (const fb::ProvenanceEntry* entry : *AsIndex(root_).provenance()) {
    provenance.emplace_back(TextOf(entry->key()), TextOf(entry->value()));
  }
  return provenance;
}

}  // namespace sealpoint::internal
