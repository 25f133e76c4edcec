// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/rewrite.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/copy/leftovers.h"
#include "lib/copy/whole_file.h"
#include "lib/format/constants.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/repack/write_batch.h"
#include "lib/tensor_stream/stream.h"
#include "sealpoint/engine.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal::repack {
namespace {

RepackReport ReportOf(const MadeCheckpoint& made) {
  const container::CommittedFiles& files = made.files;
  const metadata::Metadata& index = files.index.metadata;
  return {.attempt = files.marker.marker.attempt,
          .sequence = files.marker.marker.sequence,
          .step = files.marker.marker.step,
          .tensor_count = index.tensor_count(),
          .object_count = index.object_count(),
          .blob_count = index.blob_count(),
          .raw_bytes = index.raw_bytes(),
          .total_bytes = files.marker.marker.total_bytes,
          .was_committed = made.was_committed};
}

RepackReport PlanOf(const RewriteJob& job) {
  RepackReport report{.step = job.commit.step,
                      .tensor_count = job.tensors.size(),
                      .object_count = job.objects.size()};
  for (const TensorTask& task : job.tensors) {
    report.raw_bytes += Region::Whole(task.spec.shape).element_count() * task.spec.element_size;
  }
  return report;
}

// True if an earlier call made it.
Result<bool> IsMadeAlready(const Storage& storage, const Directory& directory,
                           const ProvenanceList& provenance, const Limits& limits) {
  const auto info = directory.Stat(format::kMarkerName);
  if (!info.ok() && info.error().code() == Code::kNotFound) return false;
  SEALPOINT_RETURN_IF_ERROR(info.status());
  const auto found = container::OpenCommitted(storage, directory.path(), limits, false);
  if (found.ok()) {
    const ProvenanceList entries = found->index.metadata.provenance();
    const bool is_this = std::ranges::all_of(provenance, [&](const auto& entry) {
      return !entry.first.starts_with("repack.") ||
             std::ranges::find(entries, entry) != entries.end();
    });
    if (is_this) return true;
  } else if (found.error().code() == Code::kIo) {
    return found.error();
  }
  return RuleError(Code::kAlreadyExists, "R-CMT-01", "the directory holds another marker",
                   found.ok() ? StrCat(", of attempt ", found->marker.marker.attempt.ToHex()) : "",
                   ", expected none")
      .AtPath(JoinPath(directory.path(), format::kMarkerName));
}

bool HasFingerprints(const std::unique_ptr<Checkpoint>& checkpoint) {
  for (std::size_t i = 0; i < checkpoint->tensor_count(); ++i) {
    if (checkpoint->tensor(i).fingerprint) return true;
  }
  return false;
}

class Rewriting {
 public:
  Rewriting(RewriteJob job, std::string to, const RepackOptions& options)
      : job_(std::move(job)),
        to_(std::move(to)),
        options_(options),
        threads_(ThreadsOf(options)),
        storage_(options.to_storage ? options.to_storage : DefaultStorage()),
        fingerprints_(std::ranges::any_of(job_.sources, HasFingerprints)),
        meter_(pipeline::ReportTo(options.on_progress, Phase::kCopy)) {}

  Result<RepackReport> Run() {
    SEALPOINT_RETURN_IF_ERROR(storage_->CreateDirectories(to_));
    SEALPOINT_ASSIGN_OR_RETURN(directory_, storage_->OpenDirectory(to_));
    SEALPOINT_ASSIGN_OR_RETURN(const MadeCheckpoint made,
                               MakeOnce(*storage_, *directory_, job_.commit.provenance,
                                        options_.limits, [this] { return Make(); }));
    return ReportOf(made);
  }

 private:
  Status Make() {
    SEALPOINT_RETURN_IF_ERROR(copy::ProbePublishMethod(*directory_).status());
    if (job_.commit.attempt.is_zero()) {
      SEALPOINT_ASSIGN_OR_RETURN(job_.commit.attempt, AttemptId::Random());
    }
    SEALPOINT_RETURN_IF_ERROR(MakeEngine());
    Status status = WriteAndCommit();
    // If nobody knows of the commit, the blobs may be part of a checkpoint.
    if (status.ok() || OutcomeIsUnknown(status)) return status;
    for (const auto& writer : writers_) {
      if (writer) static_cast<void>(writer->Abandon());
    }
    return status;
  }

  // A fourth of the budget; the sources have another one, and the pieces the rest. What an upload
  // holds of each blob comes on top: a part of the default size is as large as some budgets.
  Status MakeEngine() {
    const auto buffers = static_cast<std::uint64_t>(threads_) + 2;
    const std::uint64_t share = options_.memory_budget_bytes / 4 / buffers;
    const std::uint64_t buffer_size = std::clamp<std::uint64_t>(
        share - share % kDirectIoAlignmentBytes, kDirectIoAlignmentBytes, 4 * kMiB);
    const std::uint64_t part_size = storage_->part_size_bytes(to_);
    const std::uint64_t part_buffers = (part_size + buffer_size - 1) / buffer_size;
    const std::uint64_t all_buffers = buffers + static_cast<std::uint64_t>(threads_) * part_buffers;
    SEALPOINT_ASSIGN_OR_RETURN(engine_,
                               Engine::Create({.memory_budget_bytes = all_buffers * buffer_size,
                                               .staging_buffer_size_bytes = buffer_size,
                                               .io_thread_count = threads_,
                                               .storage = storage_}));
    return {};
  }

  Status WriteAndCommit() {
    const std::uint64_t memory =
        options_.memory_budget_bytes / 2 / static_cast<std::uint64_t>(threads_);
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<tensor_stream::Piece> pieces, Cut(memory));
    const std::size_t wanted =
        options_.blob_count != 0 ? options_.blob_count : static_cast<std::size_t>(threads_);
    const std::size_t count = std::clamp<std::size_t>(pieces.size(), 1, wanted);
    writers_.resize(count);
    std::vector<std::vector<BlobSummary>> summaries(count);
    const tensor_stream::StreamOptions stream{
        .threads = threads_, .batch_bytes = memory, .threads_per_load = kThreadsAuto};
    SEALPOINT_RETURN_IF_ERROR(
        ReadLanes(stream, Divide(pieces, count), meter_,
                  [&](std::size_t number, const tensor_stream::LaneReader& reader) {
                    return WriteLane(number, reader, summaries[number]);
                  }));
    std::vector<BlobSummary> all;
    for (const auto& some : summaries) all.insert(all.end(), some.begin(), some.end());
    return Commit(*storage_, to_, job_.commit, all).status();
  }

  // None is larger than a blob is to be, if their number was asked for.
  Result<std::vector<tensor_stream::Piece>> Cut(std::uint64_t memory_bytes) {
    constexpr std::uint64_t kLeast = 64 * kKiB;
    const std::uint64_t bytes_total = PlanOf(job_).raw_bytes;
    meter_.set_bytes_total(bytes_total);
    const std::uint64_t raw_bytes = options_.blob_count != 0
                                        ? std::max(bytes_total / options_.blob_count, kLeast)
                                        : memory_bytes;
    return CutIntoPieces(job_, {.memory_bytes = memory_bytes, .raw_bytes = raw_bytes});
  }

  // The first one also has what is no part of any piece.
  Status WriteLane(std::size_t number, const tensor_stream::LaneReader& reader,
                   std::vector<BlobSummary>& summaries) {
    if (number > 0 && reader.lane().empty()) return {};
    std::unique_ptr<BlobWriter>& writer = writers_[number];
    SEALPOINT_RETURN_IF_ERROR(MakeWriter(writer));
    if (number == 0) SEALPOINT_RETURN_IF_ERROR(WriteWithoutPieces(*writer));
    SEALPOINT_RETURN_IF_ERROR(reader.ForEachBatch(
        [&](const tensor_stream::Batch& batch) { return WriteBatch(job_, batch, *writer); }));
    SEALPOINT_ASSIGN_OR_RETURN(summaries, writer->Finish());
    return {};
  }

  Status MakeWriter(std::unique_ptr<BlobWriter>& writer) const {
    BlobWriterOptions options{.attempt = job_.commit.attempt,
                              .step = job_.commit.step,
                              .limits = options_.limits,
                              .fingerprints = fingerprints_};
    if (options_.blob_size_max_bytes != 0) options.size_max_bytes = options_.blob_size_max_bytes;
    SEALPOINT_ASSIGN_OR_RETURN(writer, BlobWriter::Create(*engine_, to_, std::move(options)));
    return {};
  }

  Status WriteWithoutPieces(BlobWriter& writer) const {
    for (const TensorTask& task : job_.tensors) {
      const bool is_empty = Region::Whole(task.spec.shape).element_count() == 0;
      if (is_empty) SEALPOINT_RETURN_IF_ERROR(writer.AddEmpty(task.spec));
    }
    for (const ObjectTask& task : job_.objects) {
      const Checkpoint& source = *job_.sources[task.source];
      SEALPOINT_ASSIGN_OR_RETURN(const Bytes bytes, source.ReadObject(task.name));
      SEALPOINT_RETURN_IF_ERROR(
          writer.AddObject({.name = task.name,
                            .media_type = source.FindObject(task.name)->media_type,
                            .codec = options_.codec.value_or(Codec::kNone)},
                           bytes));
    }
    return {};
  }

  RewriteJob job_;
  const std::string to_;
  const RepackOptions& options_;
  const int threads_;
  const std::shared_ptr<Storage> storage_;
  const bool fingerprints_;  // a source has some
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<BlobWriter>> writers_;  // one per lane
  pipeline::ByteMeter meter_;
};

}  // namespace

Result<MadeCheckpoint> MakeOnce(const Storage& storage, Directory& directory,
                                const ProvenanceList& provenance, const Limits& limits,
                                const std::function<Status()>& make) {
  SEALPOINT_ASSIGN_OR_RETURN(const bool is_made,
                             IsMadeAlready(storage, directory, provenance, limits));
  if (!is_made) SEALPOINT_RETURN_IF_ERROR(make());
  SEALPOINT_ASSIGN_OR_RETURN(container::CommittedFiles files,
                             container::OpenCommitted(storage, directory.path(), limits, true));
  // Who published then may have died before the sync.
  if (is_made) SEALPOINT_RETURN_IF_ERROR(directory.Sync());
  copy::RemoveLeftovers(directory, files.marker.marker.attempt, files.index.metadata);
  return MadeCheckpoint{.files = std::move(files), .was_committed = is_made};
}

Result<RepackReport> Rewrite(RewriteJob job, const std::string& to, const RepackOptions& options) {
  if (options.dry_run) return PlanOf(job);
  return Rewriting(std::move(job), to, options).Run();
}

}  // namespace sealpoint::internal::repack
