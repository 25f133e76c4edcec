// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_writer_impl.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"
#include "lib/format/marker.h"

namespace sealpoint::internal::writer {
namespace {

Status TheyStay(const Directory& directory, std::string_view why) {
  return RuleError(Code::kInvalidArgument, "R-CMT-15", "the finished blobs stay: ", why,
                   "; a series removes a checkpoint (Series::Delete), or an attempt that was never "
                   "committed (Series::RemoveUncommitted)")
      .AtPath(directory.path());
}

}  // namespace

// R-CMT-15: finished blobs are removed only if nothing can pin them. An index or an unpublished
// marker says that a commit is under way, or ended with an unknown outcome (R-CMT-07): a failed one
// removes both before its writers remove their blobs.
Status BlobWriterImpl::CheckNothingPins() const {
  SEALPOINT_ASSIGN_OR_RETURN(const auto entries, directory_->List());
  const auto is_marker = [](const EntryInfo& entry) {
    return format::ParseName(entry.name).kind == format::NameKind::kMarker;
  };
  AttemptId committed;
  if (std::ranges::any_of(entries, is_marker)) {
    const auto marker = container::ReadMarker(*directory_);
    if (!marker.ok()) return TheyStay(*directory_, "its marker cannot be read");
    if (marker->marker.kind == format::MarkerKind::kCommit) {
      committed = marker->marker.attempt;
      const auto index = container::ReadIndex(*directory_, marker->marker, core_->options.limits);
      if (!index.ok()) return TheyStay(*directory_, "its index cannot be read");
      const auto pins = [&](const BlobId& id) {
        for (std::size_t i = 0; i < index->metadata.blob_count(); ++i) {
          if (index->metadata.blob(i).id == id) return true;
        }
        return false;
      };
      if (std::ranges::any_of(blobs_, pins, &BegunBlob::id)) {
        return TheyStay(*directory_, "a committed checkpoint has them");
      }
    }
  }
  const AttemptId& own = core_->options.attempt;
  for (const EntryInfo& entry : entries) {
    const auto [kind, id] = format::ParseName(entry.name);
    const bool is_of_a_commit =
        kind == format::NameKind::kIndex || kind == format::NameKind::kUnpublishedMarker;
    if (!is_of_a_commit || (!committed.is_zero() && id == committed)) continue;
    if (own.is_zero() || id == own) {
      return TheyStay(*directory_, StrCat("their commit has not ended, or its outcome is unknown: ",
                                          entry.name, " is there"));
    }
  }
  return {};
}

Result<std::unique_ptr<BlobWriterImpl>> BlobWriterImpl::Create(pipeline::EngineParts& engine,
                                                               const std::string& directory,
                                                               BlobWriterOptions options) {
  SEALPOINT_RETURN_IF_ERROR(engine.CheckUsable());
  if (options.size_max_bytes < kMiB) {
    return InvalidArgument("size_max_bytes is ", options.size_max_bytes, ", at least 1 MiB");
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto opened, engine.storage->OpenDirectory(directory));
  return std::unique_ptr<BlobWriterImpl>(
      new BlobWriterImpl(std::make_unique<Core>(engine, std::move(options)), std::move(opened),
                         engine.storage->part_size_bytes(directory)));
}

BlobWriterImpl::~BlobWriterImpl() {
  if (core_->engine.CheckUsable().ok()) {
    if (!core_->is_finished) static_cast<void>(Abandon());
    return;
  }
  // In a forked child nobody writes what the open files would wait for: their memory is left.
  for (BegunBlob& blob : blobs_) blob.file.release();  // NOLINT(bugprone-unused-return-value)
}

Result<StateWriter::OpenedBlob> BlobWriterImpl::OpenBlob() {
  SEALPOINT_ASSIGN_OR_RETURN(
      auto file, BlobFile::Create(BlobContext(), *directory_, part_size_bytes_, core_->options));
  BlobStream& stream = file->stream();
  blobs_.push_back({.id = stream.id(), .file = std::move(file), .has_file = true});
  return OpenedBlob{.number = blobs_.size() - 1, .stream = &stream};
}

Status BlobWriterImpl::CloseFull(const OpenedBlob& full) {
  BegunBlob& blob = blobs_[full.number];
  SEALPOINT_RETURN_IF_ERROR(blob.file->End());
  SEALPOINT_RETURN_IF_ERROR(Close(blob));
  blob.file.reset();
  return {};
}

Status BlobWriterImpl::Close(BegunBlob& blob) {
  SEALPOINT_ASSIGN_OR_RETURN(blob.summary, blob.file->Finish(core_->options.limits));
  return {};
}

Status BlobWriterImpl::TakeOver(std::vector<std::unique_ptr<BlobStream>> staged) {
  for (const auto& stream : staged) blobs_.push_back({.id = stream->id()});
  Status first;
  for (OpenedBlob& blob : core_->full) {
    auto file = BlobFile::Create(std::move(staged[blob.number]),
                                 BlobPermit(&core_->engine, {part_size_bytes_}), *directory_,
                                 core_->options.attempt);
    if (file.ok()) {
      blobs_[blob.number].file = *std::move(file);
      blobs_[blob.number].has_file = true;
    } else {
      blob.stream = nullptr;  // it is gone
      KeepFirst(first, std::move(file).error());
    }
  }
  std::erase_if(core_->full, [](const OpenedBlob& blob) { return blob.stream == nullptr; });
  return first;
}

void BlobWriterImpl::AwaitWrites() {
  constexpr std::chrono::milliseconds kInterval(20);
  const std::uint64_t staged = core_->bytes_staged;
  const auto tell = [&](std::uint64_t bytes) {
    if (core_->options.on_bytes) core_->options.on_bytes(std::min(bytes, staged));
  };
  for (const OpenedBlob& blob : core_->full) {
    while (!blob.stream->WaitForWrites(kInterval)) {
      std::uint64_t bytes = 0;
      for (const OpenedBlob& each : core_->full) bytes += each.stream->bytes_written();
      tell(bytes);
    }
  }
  tell(staged);
}

Result<std::vector<BlobSummary>> BlobWriterImpl::Finish() {
  const Status status = Run([&]() -> Status {
    const std::vector<OpenedBlob> blobs = Blobs();
    for (const OpenedBlob& blob : blobs) SEALPOINT_RETURN_IF_ERROR(blob.stream->End());
    core_->tensors.reset();
    for (const OpenedBlob& blob : blobs) SEALPOINT_RETURN_IF_ERROR(Close(blobs_[blob.number]));
    return blobs_.empty() ? Status() : directory_->Sync();
  });
  if (!status.ok()) return status;
  core_->is_finished = true;
  core_->full.clear();
  core_->open.clear();
  std::vector<BlobSummary> summaries;
  summaries.reserve(blobs_.size());
  for (BegunBlob& blob : blobs_) {
    blob.file.reset();
    summaries.push_back(std::move(blob.summary));
  }
  return summaries;
}

Status BlobWriterImpl::Abandon() {
  SEALPOINT_RETURN_IF_ERROR(core_->engine.CheckUsable());
  if (core_->is_finished && !blobs_.empty()) {
    SEALPOINT_RETURN_IF_ERROR(CheckNothingPins());
  }
  return RemoveBlobs();
}

Status BlobWriterImpl::RemoveBlobs() {
  SEALPOINT_RETURN_IF_ERROR(core_->engine.CheckUsable());
  StopCopies();
  for (BegunBlob& blob : blobs_) blob.file.reset();
  Status first;
  for (const BegunBlob& blob : blobs_) {
    if (!blob.has_file) continue;  // a file of that name is another's (R-CMT-15)
    Status status = directory_->Remove(format::BlobName(blob.id));
    if (status.code() != Code::kNotFound) KeepFirst(first, std::move(status));
  }
  blobs_.clear();
  return first;
}

}  // namespace sealpoint::internal::writer
