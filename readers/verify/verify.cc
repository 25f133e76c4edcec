// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/verify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/storage/path.h"
#include "readers/verify/blob_check.h"
#include "readers/verify/chunk_scan.h"
#include "readers/verify/findings.h"
#include "readers/verify/inventory.h"
#include "readers/verify/shard_map.h"
#include "readers/verify/verify_context.h"
#include "sealpoint/digest.h"

namespace sealpoint {
namespace internal::verify {
namespace {

Status CheckPart(const VerifyPart& part, VerifyLevel level) {
  if (part.number == 0 || part.number > part.count || part.count > VerifyPart::kCountMax) {
    return InvalidArgument("part ", part.number, " of ", part.count, ", expected one from 1 to ",
                           part.count, " of at most ", VerifyPart::kCountMax);
  }
  if (part.is_whole() || level == VerifyLevel::kFull) return {};
  return InvalidArgument("a part of the chunks at level ", VerifyLevelName(level),
                         ", which reads none, expected level full");
}

Status CheckOptions(const VerifyOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", options.threads));
  SEALPOINT_RETURN_IF_ERROR(CheckPart(options.part, options.level));
  switch (options.level) {
    case VerifyLevel::kFiles:
    case VerifyLevel::kStructure:
    case VerifyLevel::kFull:
      return {};
  }
  return InvalidArgument("unknown level of verification");
}

// All of a small file as the disk has it. `size`: what it was found to have.
Result<Bytes> ReadDirect(const VerifyContext& context, Worker& worker, std::string_view name,
                         std::uint64_t size) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, context.Open(name));
  return ReadBytes(*file, *worker.pool, 0, size);
}

Result<format::Marker> ReadGoodMarker(const VerifyContext& context, Worker& worker) {
  SEALPOINT_ASSIGN_OR_RETURN(container::MarkerFile file, container::ReadMarker(context.directory));
  if (context.io_mode() == IoMode::kDirect) {
    // The first reading, through the page cache, found that there is a file and its length.
    SEALPOINT_ASSIGN_OR_RETURN(
        Bytes bytes, ReadDirect(context, worker, format::kMarkerName, format::kMarkerSize));
    SEALPOINT_ASSIGN_OR_RETURN(
        file, container::DecodeMarkerFile(context.directory.path(), std::move(bytes)));
  }
  context.meter.Add(format::kMarkerSize);
  SEALPOINT_RETURN_IF_ERROR(container::CheckCommitted(context.directory.path(), file.marker));
  return file.marker;
}

Result<container::IndexFile> ReadGoodIndex(const VerifyContext& context, Worker& worker,
                                           const format::Marker& marker) {
  const std::string name = format::IndexName(marker.attempt);
  const Limits& limits = context.options.limits;
  const Result<EntryInfo> entry = context.directory.Stat(name);
  const bool can_read_direct = context.io_mode() == IoMode::kDirect && entry.ok() &&
                               entry->size_bytes == marker.index_size &&
                               marker.index_size <= limits.index_size_max_bytes;
  // The other way says what is wrong with a file that does not have the pinned length.
  if (!can_read_direct) {
    context.limit.Wait(marker.index_size);
    return container::ReadIndex(context.directory, marker, limits);
  }
  SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadDirect(context, worker, name, marker.index_size));
  return container::DecodeIndexFile(context.directory.path(), marker, std::move(bytes), limits);
}

// Reads and checks COMMIT. Nothing if it is not a good commit marker; why is among the findings
// (Uncommitted for none and for a void one, NotACheckpoint if no file of ours is there).
std::optional<format::Marker> CheckMarker(const VerifyContext& context, Worker& worker) {
  Result<format::Marker> marker = ReadGoodMarker(context, worker);
  if (marker) return *marker;
  context.findings.Add(kMarkerRank,
                       std::move(marker).error().AtPath(context.PathOf(format::kMarkerName)));
  return std::nullopt;
}

// Reads and checks the index that the marker pins. Nothing if it cannot be used.
std::optional<container::IndexFile> CheckIndex(const VerifyContext& context, Worker& worker,
                                               const format::Marker& marker) {
  Result<container::IndexFile> index = ReadGoodIndex(context, worker, marker);
  if (!index) {
    context.findings.Add(kIndexRank, std::move(index).error().AtPath(
                                         context.PathOf(format::IndexName(marker.attempt))));
    return std::nullopt;
  }
  context.meter.Add(marker.index_size);
  return std::move(*index);
}

// Large, since the disk rests for a moment between two units of a thread; but several per thread,
// so that they end at about the same time.
std::uint64_t UnitSize(std::uint64_t total_bytes, int threads) {
  constexpr std::uint64_t kUnitsPerThread = 4;
  return std::clamp(total_bytes / (kUnitsPerThread * static_cast<std::uint64_t>(threads)),
                    32 * kMiB, kGiB);
}

// One call of Verify.
class Verification {
 public:
  Verification(const VerifyOptions& options, VerifyReport& report)
      : options_(options),
        threads_(pipeline::ChosenThreads(options.threads, 1)),
        report_(report),
        findings_({.per_file_max = options.violations_per_file_max}, options.on_violation),
        meter_(options.on_progress),
        limit_(options.bytes_per_second_max),
        verified_(static_cast<VerifiedChunksImpl*>(options.verified.get())) {}

  // Errors are those of this process (no memory); all else becomes findings.
  Status Run();

 private:
  Status CheckDirectory(const Directory& directory);
  // Whoever deletes a checkpoint takes its marker first: what is missing counts only if that is
  // still there.
  void ForgetIfDeleted(const Directory& directory);
  void CheckPinned(const VerifyContext& context);
  // The base of a delta; null if there is none, or if it cannot be used, which is a finding.
  Result<std::unique_ptr<load::CheckpointImpl>> OpenBase(const VerifyContext& context);
  Status CheckBlobs(const VerifyContext& context, const format::Marker& marker,
                    const metadata::Metadata& index);
  Status CheckPayload(const BlobCheckInput& input, const std::vector<ScanUnit>& units);
  Result<std::vector<std::uint8_t>> CheckLengths(const VerifyContext& context,
                                                 const metadata::Metadata& index);
  void NoteShared(const VerifyContext& context, const metadata::BlobPin& pin);
  void NoteMarker(const format::Marker& marker);
  void NoteIndex(const metadata::Metadata& index);
  std::uint64_t BytesToCheck(const format::Marker& marker, const metadata::Metadata& index,
                             VerifyLevel level) const;

  const VerifyOptions& options_;
  const int threads_;
  VerifyReport& report_;
  Findings findings_;
  Meter meter_;
  RateLimit limit_;
  VerifiedChunksImpl* const verified_;  // there is no other class of them
  std::atomic<std::uint64_t> shared_bytes_ = 0;
  std::vector<Worker> workers_;
  std::optional<format::Marker> marker_;
  std::optional<container::IndexFile> index_;
};

Status Verification::Run() {
  for (int i = 0; i < threads_; ++i) {
    const std::uint64_t read_size = limit_.ReadSize(kReadSizeBytes, threads_);
    SEALPOINT_ASSIGN_OR_RETURN(Worker worker, Worker::Create(read_size));
    workers_.push_back(std::move(worker));
  }
  const std::shared_ptr<Storage> storage = options_.storage ? options_.storage : DefaultStorage();
  const Result<std::unique_ptr<Directory>> directory =
      container::OpenCheckpointDirectory(*storage, report_.path);
  if (directory) {
    SEALPOINT_RETURN_IF_ERROR(CheckDirectory(**directory));
    ForgetIfDeleted(**directory);
  } else {
    const bool is_missing = directory.error().code() == Code::kNotFound;
    Status error = Status(directory.error()).AtPath(report_.path);
    findings_.Add(kDirectoryRank, is_missing ? std::move(error).AtRule("R-DIR-01") : error);
  }
  findings_.MoveTo(report_);
  report_.bytes_checked = meter_.bytes_done();
  report_.bytes_known = meter_.bytes_known();
  report_.shared_bytes = shared_bytes_;
  return meter_.failure();
}

Status Verification::CheckDirectory(const Directory& directory) {
  VerifyContext context{.directory = directory,
                        .options = options_,
                        .findings = findings_,
                        .meter = meter_,
                        .limit = limit_,
                        .verified = verified_};
  CheckPinned(context);
  SEALPOINT_ASSIGN_OR_RETURN(const std::unique_ptr<load::CheckpointImpl> base, OpenBase(context));
  context.base = base.get();
  // Nothing pins the files of an attempt that was never committed.
  const bool is_attempt = !marker_ && findings_.verdict() == Verdict::kUncommitted;
  findings_.Add(kDirectoryRank, NoteOtherFiles(directory,
                                               {.is_known = is_attempt || index_.has_value(),
                                                .marker = marker_ ? &*marker_ : nullptr,
                                                .index = index_ ? &index_->metadata : nullptr},
                                               report_));
  if (!index_) return {};
  return CheckBlobs(context, *marker_, index_->metadata);
}

void Verification::ForgetIfDeleted(const Directory& directory) {
  const Verdict verdict = findings_.verdict();
  const bool may_be_deleted = verdict == Verdict::kIncomplete || verdict == Verdict::kUnreadable;
  if (!marker_ || !may_be_deleted) return;
  const auto now = container::ReadMarker(directory);
  const Code code = now.error().code();
  const bool is_gone =
      now.ok()
          ? now->marker.attempt != marker_->attempt || now->marker.kind != marker_->kind
          : code == Code::kNotFound || code == Code::kUncommitted || code == Code::kNotACheckpoint;
  if (!is_gone) return;
  findings_.Clear();
  findings_.Add(kDirectoryRank,
                MakeError(Code::kNotFound, "the checkpoint was deleted while it was verified")
                    .AtPath(report_.path));
}

void Verification::CheckPinned(const VerifyContext& context) {
  marker_ = CheckMarker(context, workers_.front());
  if (!marker_) return;
  NoteMarker(*marker_);
  index_ = CheckIndex(context, workers_.front(), *marker_);
  if (!index_) return;
  NoteIndex(index_->metadata);
}

Result<std::unique_ptr<load::CheckpointImpl>> Verification::OpenBase(const VerifyContext& context) {
  if (!index_ || !index_->metadata.base()) return std::unique_ptr<load::CheckpointImpl>();
  const std::shared_ptr<Storage> storage = options_.storage ? options_.storage : DefaultStorage();
  auto files =
      container::OpenBase(*storage, context.directory.path(), index_->metadata, options_.limits,
                          /*check_files=*/true, options_.base_directories);
  if (!files.ok()) {
    findings_.Add(kIndexRank, std::move(files).error());
    return std::unique_ptr<load::CheckpointImpl>();
  }
  const std::string path = (*files)->directory->path();
  return load::CheckpointImpl::FromFiles(path, {.storage = storage, .limits = options_.limits},
                                         std::move(**files));
}

void Verification::NoteMarker(const format::Marker& marker) {
  report_.attempt = marker.attempt;
  report_.parent = marker.parent;
  report_.sequence = marker.sequence;
  report_.step = marker.step;
  const std::uint64_t unknown = marker.features.compat & ~format::kKnownCompatFeatures;
  if (unknown != 0) {
    report_.notes.push_back(
        StrCat("compat features ", unknown, " are not known to this build and were ignored"));
  }
}

void Verification::NoteIndex(const metadata::Metadata& index) {
  report_.tensor_count = index.tensor_count();
  report_.object_count = index.object_count();
  report_.blob_count = index.blob_count();
  for (std::size_t b = 0; b < index.blob_count(); ++b) {
    report_.chunk_count += index.blob(b).record_count;
  }
}

std::uint64_t Verification::BytesToCheck(const format::Marker& marker,
                                         const metadata::Metadata& index, VerifyLevel level) const {
  std::uint64_t bytes = format::kMarkerSize + marker.index_size;
  if (level == VerifyLevel::kFiles) return bytes;
  for (std::size_t b = 0; b < index.blob_count(); ++b) {
    const metadata::BlobPin pin = index.blob(b);
    bytes += level == VerifyLevel::kFull ? pin.file_size
                                         : pin.file_size - pin.table_offset + format::kHeaderSize;
  }
  return bytes;
}

// An object store has one name for each object: it is not asked.
void Verification::NoteShared(const VerifyContext& context, const metadata::BlobPin& pin) {
  if (verified_ == nullptr || !storage::SchemeOf(context.directory.path()).empty()) return;
  const auto file = context.Open(format::BlobName(pin.id));
  if (file && verified_->SeesAgain(KeyOf(**file))) shared_bytes_ += pin.file_size;
}

// By number of the blob, whether it is there and long enough.
Result<std::vector<std::uint8_t>> Verification::CheckLengths(const VerifyContext& context,
                                                             const metadata::Metadata& index) {
  std::vector<std::uint8_t> is_whole(index.blob_count());
  SEALPOINT_RETURN_IF_ERROR(
      pipeline::ParallelFor(threads_, index.blob_count(), [&](int, std::size_t blob) {
        is_whole[blob] = CheckBlobLength(context, index, blob) ? 1 : 0;
        if (is_whole[blob] != 0) NoteShared(context, index.blob(blob));
        return meter_.failure();
      }));
  return is_whole;
}

Status Verification::CheckBlobs(const VerifyContext& context, const format::Marker& marker,
                                const metadata::Metadata& index) {
  report_.total_bytes = BytesToCheck(marker, index, VerifyLevel::kFull);
  meter_.set_total(BytesToCheck(marker, index, options_.level));
  // What is not there costs no memory: the map has the shards of the blobs whose length is right.
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> is_whole,
                             CheckLengths(context, index));
  if (options_.level == VerifyLevel::kFiles) return {};
  const ShardMap map(index, is_whole);
  ManifestTotals totals(index);
  const CheckpointKey checkpoint{.path = ComputeDigest(AsBytes(context.directory.path())),
                                 .attempt = marker.attempt,
                                 .marker = ComputeDigest(format::EncodeMarker(marker))};
  const BlobCheckInput input{.context = context,
                             .marker = marker,
                             .map = map,
                             .totals = totals,
                             .checkpoint = checkpoint,
                             .unit_size_bytes = UnitSize(marker.total_bytes, threads_)};
  std::vector<std::vector<ScanUnit>> units_of_worker(workers_.size());
  SEALPOINT_RETURN_IF_ERROR(
      pipeline::ParallelFor(threads_, index.blob_count(), [&](int worker, std::size_t blob) {
        const auto w = static_cast<std::size_t>(worker);
        if (is_whole[blob] == 0) {
          totals.MissedManifest();
          return Status();
        }
        BlobCheck(input, blob).Run(workers_[w], units_of_worker[w]);
        return meter_.failure();
      }));
  totals.ForEachViolation([&](Status violation) {
    findings_.Add(kIndexRank,
                  std::move(violation).AtPath(context.PathOf(format::IndexName(marker.attempt))));
  });
  std::vector<ScanUnit> units;
  for (const std::vector<ScanUnit>& some : units_of_worker) {
    units.insert(units.end(), some.begin(), some.end());
  }
  return CheckPayload(input, units);
}

Status Verification::CheckPayload(const BlobCheckInput& input, const std::vector<ScanUnit>& units) {
  pipeline::ThreadPool io(threads_);
  return pipeline::ParallelFor(threads_, units.size(), [&](int worker, std::size_t i) {
    ScanChunks(input, units[i], workers_[static_cast<std::size_t>(worker)], io);
    return meter_.failure();
  });
}

}  // namespace
}  // namespace internal::verify

Result<VerifyReport> Verify(const std::string& path, const VerifyOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(internal::verify::CheckOptions(options));
  const auto begin = std::chrono::steady_clock::now();
  VerifyReport report;
  report.path = path;
  report.level = options.level;
  report.part = options.part;
  SEALPOINT_RETURN_IF_ERROR(internal::verify::Verification(options, report).Run());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace sealpoint
