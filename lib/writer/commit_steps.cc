// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/commit_steps.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/utf8.h"
#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "lib/storage/durable.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/version.h"

namespace sealpoint::internal::writer {
namespace {

std::uint64_t NowUnixNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

metadata::IndexAttributes AttributesOf(const CommitOptions& options, const PinnedBase* base) {
  metadata::IndexAttributes attributes{.created_unix_ns = NowUnixNs(),
                                       .mesh = options.mesh,
                                       .provenance = options.provenance,
                                       .attributes = options.attributes};
  if (base != nullptr) attributes.base = base->ref();
  attributes.provenance.emplace_back("sealpoint.writer", StrCat("sealpoint ", VersionString()));
  return attributes;
}

// R-CMT-21. Readers do not compare the tag; what it shows here is a summary of an attempt that
// failed.
Status CheckAttempts(const CommitOptions& options, std::span<const CommittedBlob> blobs) {
  if (options.reuses_blobs) return {};
  for (const CommittedBlob& blob : blobs) {
    if (blob.attempt.is_zero() || blob.attempt == options.attempt) continue;
    return RuleError(Code::kInvalidArgument, "R-CMT-21", "blob ", blob.pin.id.ToHex(),
                     " was written for attempt ", blob.attempt.ToHex(), ", expected ",
                     options.attempt.ToHex());
  }
  return {};
}

// R-HDR-09.
Result<format::FeatureMasks> FeaturesOf(const CommitOptions& options,
                                        std::span<const CommittedBlob> blobs,
                                        const PinnedBase* base) {
  format::FeatureMasks features{
      .compat = options.attributes.empty() ? 0 : format::kAttributeFeature,
      .incompat = base != nullptr ? format::kDeltaFeatures : 0};
  for (const CommittedBlob& blob : blobs) {
    features.compat |= blob.features.compat;
    if ((blob.features.incompat & ~features.incompat) == 0) continue;
    return InvalidArgument("blob ", blob.pin.id.ToHex(),
                           " may have changes to a base, and the checkpoint has no base");
  }
  return features;
}

// Shared, because what is decoded of it refers to it.
Result<std::shared_ptr<const Bytes>> BuildIndexFile(const CommitOptions& options,
                                                    std::span<const CommittedBlob> blobs,
                                                    const IndexMaker& make_index,
                                                    const PinnedBase* base) {
  SEALPOINT_RETURN_IF_ERROR(CheckAttempts(options, blobs));
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes buffer, make_index(AttributesOf(options, base)));
  SEALPOINT_ASSIGN_OR_RETURN(const format::FeatureMasks features, FeaturesOf(options, blobs, base));
  auto file = std::make_shared<Bytes>(format::kHeaderSize + buffer.size());
  std::copy(buffer.begin(), buffer.end(), file->begin() + format::kHeaderSize);
  format::EncodeHeader({.kind = format::FileKind::kIndex,
                        .features = features,
                        .id = options.attempt,
                        .attempt = options.attempt,
                        .step = options.step},
                       MutableByteSpan(*file).first(format::kHeaderSize));
  return std::shared_ptr<const Bytes>(std::move(file));
}

// The marker for these index bytes, after they passed the reader's whole pass (R-CMT-03).
Result<format::Marker> CheckIndexAndMakeMarker(const CommitOptions& options,
                                               const std::shared_ptr<const Bytes>& index_file,
                                               const PinnedBase* base, CommitInfo& info) {
  SEALPOINT_ASSIGN_OR_RETURN(const format::FileHeader header,
                             format::DecodeHeader(*index_file, format::FileKind::kIndex));
  SEALPOINT_ASSIGN_OR_RETURN(
      const metadata::Metadata metadata,
      metadata::Metadata::Decode(metadata::MetadataKind::kIndex, index_file,
                                 ByteSpan(*index_file).subspan(format::kHeaderSize), options.limits,
                                 metadata::AnnouncedBy(header.features)));
  if (base != nullptr) SEALPOINT_RETURN_IF_ERROR(base->CheckTensors(metadata));
  format::Marker marker{.kind = format::MarkerKind::kCommit,
                        .features = header.features,
                        .attempt = options.attempt,
                        .step = options.step,
                        .parent = options.parent ? options.parent->attempt : AttemptId{},
                        .sequence = options.parent ? options.parent->sequence + 1 : 1,
                        .index_size = index_file->size(),
                        .index_digest = ComputeDigest(*index_file),
                        .blob_count = metadata.blob_count(),
                        .total_bytes = 0};
  for (std::size_t i = 0; i < metadata.blob_count(); ++i) {
    marker.total_bytes += metadata.blob(i).file_size;
  }
  info.attempt = marker.attempt;
  info.parent = marker.parent;
  info.sequence = marker.sequence;
  info.step = marker.step;
  info.blob_count = marker.blob_count;
  info.tensor_count = metadata.tensor_count();
  info.raw_bytes = metadata.raw_bytes();
  info.total_bytes = marker.total_bytes;
  info.index_bytes = index_file->size();
  return marker;
}

}  // namespace

Status CheckBlobsAreThere(const Directory& directory, std::span<const CommittedBlob> blobs) {
  std::vector<std::string> names;
  names.reserve(blobs.size());
  for (const CommittedBlob& blob : blobs) names.push_back(format::BlobName(blob.pin.id));
  SEALPOINT_ASSIGN_OR_RETURN(const auto infos, directory.StatEach(names));
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    const CommittedBlob& blob = blobs[i];
    const Result<EntryInfo>& info = infos[i];
    if (!info.ok() && info.error().code() != Code::kNotFound) return info.error();
    const bool is_whole =
        info.ok() && info->kind == EntryKind::kFile && info->size_bytes == blob.pin.file_size;
    if (is_whole) continue;
    const std::string found = !info.ok()                       ? "missing"
                              : info->kind != EntryKind::kFile ? "no regular file"
                                                               : StrCat(info->size_bytes, " bytes");
    return RuleError(Code::kIncomplete, "R-CMT-02", "the blob is ", found, "; its summary says ",
                     blob.pin.file_size, " bytes")
        .AtPath(JoinPath(directory.path(), names[i]));
  }
  return {};
}

Status CheckDescription(const MeshAxes& mesh, const ProvenanceList& provenance) {
  std::set<std::string_view> keys;
  for (const auto& [key, value] : provenance) {
    SEALPOINT_RETURN_IF_ERROR(CheckText("provenance key", key, kNameSizeMaxBytes));
    if (key.starts_with("sealpoint.")) {
      return RuleError(Code::kInvalidArgument, "R-CMT-24", "provenance key \"", key,
                       "\" is reserved for the library");
    }
    if (!keys.insert(key).second) {
      return RuleError(Code::kInvalidArgument, "R-CMT-24", "provenance key \"", key,
                       "\" is given twice");
    }
    if (value.size() > kProvenanceValueSizeMaxBytes) {
      return InvalidArgument("the value of provenance key \"", key, "\" has ", value.size(),
                             " bytes, at most ", kProvenanceValueSizeMaxBytes);
    }
    if (!IsUtf8(value)) {
      return InvalidArgument("the value of provenance key \"", key,
                             "\" is not UTF-8: store bytes as an object");
    }
  }
  for (const auto& [axis, extent] : mesh) {
    SEALPOINT_RETURN_IF_ERROR(CheckText("mesh axis", axis, kNameSizeMaxBytes));
  }
  return {};
}

Status CheckParent(const std::optional<ParentRef>& parent) {
  if (!parent) return {};
  if (parent->attempt.is_zero()) return InvalidArgument("the parent's attempt id is zero");
  if (parent->sequence == 0 || parent->sequence == std::numeric_limits<std::uint64_t>::max()) {
    return InvalidArgument("the parent's sequence is ", parent->sequence);
  }
  return {};
}

Status CheckNoMarker(Directory& directory) {
  const std::string name(format::kMarkerName);
  // An object store answers what follows from the same listing.
  SEALPOINT_ASSIGN_OR_RETURN(const auto infos, directory.StatEach({&name, 1}));
  const Result<EntryInfo>& info = infos.front();
  if (info.ok()) {
    return RuleError(Code::kAlreadyExists, "R-CMT-01", "the directory already holds a marker")
        .AtPath(JoinPath(directory.path(), format::kMarkerName));
  }
  return info.error().code() == Code::kNotFound ? Status() : info.error();
}

namespace {

// Writes a file and notes its name in `own_files`, which a failure removes. A name that was taken
// is another attempt's file, perhaps part of a checkpoint, and is not noted (R-CMT-15).
Status WriteOwnFile(Directory& directory, const std::string& name, ByteSpan content,
                    std::vector<std::string>& own_files) {
  Status status = storage::WriteFileDurably(directory, name, content);
  if (status.code() != Code::kAlreadyExists) own_files.push_back(name);
  return status;
}

// R-CMT-31. Merging copies the fields that this version knows: the index would lack what the bits
// of the blob announce.
Status CheckFeatures(const format::FileHeader& header) {
  const std::uint64_t unknown = header.features.compat & ~format::kKnownCompatFeatures;
  if (unknown == 0) return {};
  return RuleError(Code::kUnsupported, "R-CMT-31", "blob ", header.id.ToHex(),
                   " has compat features ", unknown, " that this version cannot merge");
}

}  // namespace

Status WriteIndexAndMarker(Directory& directory, PublishMethod method, const AttemptId& attempt,
                           ByteSpan index_file, ByteSpan marker,
                           std::vector<std::string>& own_files) {
  SEALPOINT_RETURN_IF_ERROR(
      WriteOwnFile(directory, format::IndexName(attempt), index_file, own_files));
  // A put needs no name to publish from, and what was put is durable.
  if (method == PublishMethod::kPutIfAbsent) return {};
  SEALPOINT_RETURN_IF_ERROR(
      WriteOwnFile(directory, format::UnpublishedMarkerName(attempt), marker, own_files));
  // Both names must be durable before the publication (R-CMT-11): after a power loss `COMMIT` may
  // not outlive the index that it pins.
  return directory.Sync();
}

Status PublishMarker(Directory& directory, PublishMethod method, const AttemptId& attempt,
                     ByteSpan marker) {
  if (method == PublishMethod::kPutIfAbsent) {
    return storage::PublishByPut(
        directory, format::kMarkerName, marker,
        format::EncodeMarker({.kind = format::MarkerKind::kVoid, .attempt = attempt}));
  }
  return storage::PublishDurably(directory, method, format::UnpublishedMarkerName(attempt),
                                 format::kMarkerName, marker);
}

// The unpublished marker first: after a crash in between only an index is left, which nobody can
// publish any more. The other way round a marker without its index would be left.
void RemoveOwnFiles(Directory& directory, std::vector<std::string>& own_files) {
  for (; !own_files.empty(); own_files.pop_back()) {
    static_cast<void>(directory.Remove(own_files.back()));
  }
}

Result<std::vector<CommittedBlob>> CommittedBlobsOf(std::span<const BlobSummary> summaries) {
  std::vector<CommittedBlob> blobs;
  blobs.reserve(summaries.size());
  for (const BlobSummary& summary : summaries) {
    const DecodedSummary* const decoded = InternalAccess::DecodedOf(summary);
    if (decoded == nullptr) return InvalidArgument("summary is empty (default-constructed)");
    SEALPOINT_RETURN_IF_ERROR(CheckFeatures(decoded->header));
    blobs.push_back({.pin = decoded->pin,
                     .attempt = decoded->header.attempt,
                     .features = decoded->header.features});
  }
  return blobs;
}

Result<CommitInfo> RunCommit(Directory& directory, PublishMethod method,
                             const CommitOptions& options, std::span<const CommittedBlob> blobs,
                             const IndexMaker& make_index, observe::PhaseRecorder& recorder,
                             const BeforePublication& before_publication, const PinnedBase* base) {
  // Up to WriteIndexAndMarker nothing is written: a crash leaves the blobs of an attempt that was
  // never committed, which Series::RemoveUncommitted finds.
  CommitInfo info{.directory = directory.path()};
  recorder.Begin(Phase::kCheckBlobs);
  if (!before_publication) SEALPOINT_RETURN_IF_ERROR(CheckBlobsAreThere(directory, blobs));
  recorder.Begin(Phase::kBuildIndex);
  SEALPOINT_ASSIGN_OR_RETURN(const std::shared_ptr<const Bytes> index_file,
                             BuildIndexFile(options, blobs, make_index, base));
  recorder.Begin(Phase::kCheckIndex);
  SEALPOINT_ASSIGN_OR_RETURN(const format::Marker marker,
                             CheckIndexAndMakeMarker(options, index_file, base, info));
  for (const CommittedBlob& blob : blobs) {
    if (blob.attempt.is_zero() || blob.attempt == options.attempt) continue;
    ++info.reused_blob_count;
    info.reused_bytes += blob.pin.file_size;
  }
  const format::MarkerBytes marker_bytes = format::EncodeMarker(marker);
  recorder.Begin(Phase::kWriteIndex, index_file->size());
  // A crash from here on leaves an index, and perhaps `<attempt>.commit`, beside the blobs: still
  // an uncommitted attempt, since no reader looks at any name but `COMMIT`.
  std::vector<std::string> own_files;
  Status status =
      WriteIndexAndMarker(directory, method, options.attempt, *index_file, marker_bytes, own_files);
  recorder.Progress(index_file->size());
  if (status.ok() && before_publication) status = before_publication(*index_file, marker_bytes);
  if (status.ok() && base != nullptr) status = base->Pin(directory.path());
  if (status.ok()) {
    recorder.Begin(Phase::kPublish);
    status = recorder.failure();  // the last moment at which the save can be given up
  }
  // A crash within leaves the directory either uncommitted or committed, never in between: `COMMIT`
  // appears with its whole content, and all that it pins is durable.
  if (status.ok()) {
    status = PublishMarker(directory, method, options.attempt, marker_bytes);
    if (status.ok() && base != nullptr) {
      const Status stays = base->CheckStays();
      if (!stays.ok()) status = storage::WithUnknownOutcome(stays);
    }
  }
  recorder.End();
  // If the outcome is unknown the checkpoint may exist: removing its index would destroy it
  // (R-CMT-07).
  if (!status.ok() && !OutcomeIsUnknown(status)) RemoveOwnFiles(directory, own_files);
  if (!status.ok()) return status;
  info.report = recorder.report();
  return info;
}

}  // namespace sealpoint::internal::writer
