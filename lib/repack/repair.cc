// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/copy/blob_copy.h"
#include "lib/copy/whole_file.h"
#include "lib/format/constants.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/promote/promote_files.h"
#include "lib/repack/rewrite.h"
#include "lib/repack/tasks.h"
#include "lib/storage/durable.h"
#include "lib/storage/path.h"
#include "lib/writer/blob_summary_parts.h"
#include "sealpoint/repack.h"

namespace sealpoint {
namespace internal::repack {
namespace {

// A directory that may have some of the files.
struct RepairPlace {
  std::string path;
  Result<std::unique_ptr<Directory>> opened;
};

class Repairing {
 public:
  Repairing(std::vector<std::string> paths, std::string to, const RepairOptions& options,
            RepairReport& report)
      : paths_(std::move(paths)),
        to_(std::move(to)),
        options_(options),
        threads_(pipeline::ChosenThreads(options.threads, 2)),
        from_storage_(options.from_storage ? options.from_storage : DefaultStorage()),
        to_storage_(options.to_storage ? options.to_storage : DefaultStorage()),
        report_(report),
        meter_(pipeline::ReportTo(options.on_progress, Phase::kCopy)) {}

  Status Run() {
    SEALPOINT_RETURN_IF_ERROR(CheckOptions());
    for (const std::string& path : paths_) {
      places_.push_back({path, from_storage_->OpenDirectory(path)});
    }
    SEALPOINT_RETURN_IF_ERROR(FindMarker());
    SEALPOINT_RETURN_IF_ERROR(FindIndex());
    std::uint64_t bytes_total = 0;
    for (const metadata::BlobPin& pin : pins_) bytes_total += pin.file_size;
    meter_.set_bytes_total(bytes_total);
    SEALPOINT_RETURN_IF_ERROR(to_storage_->CreateDirectories(to_));
    SEALPOINT_ASSIGN_OR_RETURN(target_, to_storage_->OpenDirectory(to_));
    const auto taken = target_->Stat(format::kMarkerName);
    if (!taken.ok() && taken.error().code() != Code::kNotFound) return taken.error();
    // It is this checkpoint, or another one, which is found out before a blob is copied.
    if (taken.ok()) {
      SEALPOINT_RETURN_IF_ERROR(Publish());
      return pipeline::ParallelFor(threads_, pins_.size(),
                                   [&](int, std::size_t i) { return VerifyInTarget(pins_[i]); });
    }
    SEALPOINT_RETURN_IF_ERROR(CopyBlobs());
    SEALPOINT_RETURN_IF_ERROR(CheckNothingIsLost());
    return Publish();
  }

 private:
  Status CheckOptions() const {
    SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", options_.threads));
    if (copy::PieceSize(options_.memory_budget_bytes, threads_) < kDirectIoAlignmentBytes) {
      return InvalidArgument("memory_budget_bytes is ", options_.memory_budget_bytes,
                             ", expected at least ", kDirectIoAlignmentBytes, " for each of ",
                             threads_, " threads");
    }
    if (from_storage_ != to_storage_ || !IsPlace(to_)) return {};
    return InvalidArgument("the destination is one of the sources, expected a new directory")
        .AtPath(to_);
  }

  // That of the first place decides; of the others all have to be of one attempt.
  Status FindMarker() {
    Status problem;
    for (const RepairPlace& place : places_) {
      auto found = place.opened.ok() ? container::ReadMarker(**place.opened)
                                     : Result<container::MarkerFile>(place.opened.error());
      Status status = found.status();
      if (status.ok()) status = container::CheckCommitted(place.path, found->marker);
      if (!status.ok()) {
        if (problem.ok()) problem = std::move(status);
        continue;
      }
      if (report_.marker_from.empty()) {
        marker_ = *std::move(found);
        report_.marker_from = place.path;
      } else if (found->bytes != marker_.bytes && report_.marker_from != paths_.front()) {
        return InvalidArgument("the locations hold different checkpoints: attempt ",
                               found->marker.attempt.ToHex(), ", expected ",
                               marker_.marker.attempt.ToHex(), " as in ", report_.marker_from)
            .AtPath(place.path);
      }
    }
    if (report_.marker_from.empty()) {
      return std::move(problem).Prefixed("no location has a commit marker");
    }
    report_.attempt = marker_.marker.attempt;
    report_.step = marker_.marker.step;
    return {};
  }

  Status FindIndex() {
    Status problem;
    for (const RepairPlace& place : places_) {
      if (!place.opened.ok()) continue;
      auto found = container::ReadIndex(**place.opened, marker_.marker, options_.limits);
      if (found.ok()) {
        index_ = *std::move(found);
        report_.index_from = place.path;
        for (std::size_t i = 0; i < index_->metadata.blob_count(); ++i) {
          pins_.push_back(index_->metadata.blob(i));
        }
        return {};
      }
      if (problem.ok()) problem = found.error();
    }
    if (options_.rebuild_index) return FindBlobsOfAttempt();
    return std::move(problem).Prefixed(
        "no location has the index that the marker pins; RepairOptions::rebuild_index makes a new "
        "attempt from the blobs");
  }

  // Blobs that say that they are of the attempt: all of it, if the marker says as much of them.
  Status FindBlobsOfAttempt() {
    std::map<BlobId, BlobSummary> summaries;
    for (const RepairPlace& place : places_) {
      const auto blobs = ListBlobs(*from_storage_, place.path);
      if (!blobs.ok()) continue;
      for (const BlobId& id : *blobs) {
        if (summaries.contains(id)) continue;
        auto summary = ReadSummary(*from_storage_, place.path, id, options_.limits);
        if (!summary.ok()) continue;
        if (InternalAccess::DecodedOf(*summary)->header.attempt != marker_.marker.attempt) continue;
        summaries.emplace(id, *std::move(summary));
      }
    }
    std::uint64_t total_bytes = 0;
    for (auto& [id, summary] : summaries) {
      pins_.push_back(InternalAccess::DecodedOf(summary)->pin);
      total_bytes += summary.file_size_bytes();
      summaries_.push_back(std::move(summary));
    }
    const format::Marker& marker = marker_.marker;
    if (pins_.size() == marker.blob_count && total_bytes == marker.total_bytes) return {};
    return RuleError(Code::kIncomplete, "R-MRK-07", "no location has the index, and there are ",
                     pins_.size(), " blobs of attempt ", marker.attempt.ToHex(), " with ",
                     total_bytes, " bytes, expected ", marker.blob_count, " with ",
                     marker.total_bytes)
        .AtPath(paths_.front());
  }

  Status CopyBlobs() {
    SEALPOINT_ASSIGN_OR_RETURN(publish_, copy::ProbePublishMethod(*target_));
    report_.blobs.resize(pins_.size());
    return pipeline::ParallelFor(threads_, pins_.size(), [&](int, std::size_t i) {
      return CopyFromAny(pins_[i], report_.blobs[i]);
    });
  }

  Status CopyFromAny(const metadata::BlobPin& pin, RepairedBlob& blob) {
    blob.id = pin.id;
    blob.size_bytes = pin.file_size;
    SEALPOINT_ASSIGN_OR_RETURN(
        const bool is_there, copy::HasBlob(*target_, pin, target_->Stat(format::BlobName(pin.id))));
    if (is_there) {
      blob.from = to_;
      return VerifyInTarget(pin);
    }
    for (const RepairPlace& place : places_) {
      if (!blob.from.empty()) return {};
      const Status status = CopyFrom(place, pin);
      if (status.ok()) {
        blob.from = place.path;
      } else if (IsOfTarget(status)) {
        return status;
      } else {
        blob.problems.push_back(status);
      }
    }
    return {};
  }

  bool IsPlace(std::string_view path) const {
    const auto trimmed = [](std::string_view text) {
      while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
      return text;
    };
    return std::ranges::any_of(
        paths_, [&](const std::string& place) { return trimmed(place) == trimmed(path); });
  }
  // Whether an error is that of the new directory, so that no other place helps. Places of another
  // storage may have the same path.
  bool IsOfTarget(const Status& error) const {
    if (error.code() == Code::kCancelled || error.code() == Code::kNoSpace) return true;
    const std::string& path = error.place().path;
    return !IsPlace(storage::ParentPath(path)) &&
           path == JoinPath(to_, storage::LastComponent(path));
  }

  // What an earlier call left may be damaged by now, or be one of the places under another path.
  Status VerifyInTarget(const metadata::BlobPin& pin) {
    return copy::VerifyBlob(*target_, pin, CopyOptionsOf())
        .Prefixed("the destination has a damaged copy of it; expected another directory");
  }

  copy::BlobCopyOptions CopyOptionsOf() {
    return {.publish = publish_,
            .piece_size_bytes = copy::PieceSize(options_.memory_budget_bytes, threads_),
            .limits = options_.limits,
            .meter = meter_};
  }

  Status CopyFrom(const RepairPlace& place, const metadata::BlobPin& pin) {
    if (!place.opened.ok()) return place.opened.error();
    SEALPOINT_RETURN_IF_ERROR((*place.opened)->Stat(format::BlobName(pin.id)).status());
    return copy::CopyBlob(**place.opened, *target_, pin, CopyOptionsOf()).status();
  }

  Status CheckNothingIsLost() {
    std::set<BlobId> lost;
    for (const RepairedBlob& blob : report_.blobs) {
      if (blob.from.empty()) lost.insert(blob.id);
    }
    if (lost.empty()) return {};
    for (const BlobSummary& summary : summaries_) {
      if (lost.contains(summary.blob())) ListLost(InternalAccess::DecodedOf(summary)->manifest, {});
    }
    if (index_) ListLost(index_->metadata, lost);
    return RuleError(Code::kIncomplete, "R-BLB-01", lost.size(), " of ", pins_.size(),
                     " blobs are intact in none of ", places_.size(), " places, among them ",
                     lost.begin()->ToHex(), "; this loses parts of ", report_.lost_tensors.size(),
                     " tensors and ", report_.lost_objects.size(), " objects")
        .AtPath(paths_.front());
  }

  // What an index has in these blobs, or all that a manifest has.
  void ListLost(const metadata::Metadata& metadata, const std::set<BlobId>& lost) {
    const auto is_lost = [&](const metadata::ShardRef& shard) {
      return metadata.kind() == metadata::MetadataKind::kManifest ||
             lost.contains(metadata.blob(shard.blob).id);
    };
    for (std::size_t i = 0; i < metadata.tensor_count(); ++i) {
      const metadata::TensorView tensor = metadata.tensor(i);
      bool has_lost = false;
      for (std::size_t shard = 0; shard < tensor.shard_count() && !has_lost; ++shard) {
        has_lost = is_lost(tensor.shard_ref(shard));
      }
      if (has_lost) report_.lost_tensors.emplace_back(tensor.name());
    }
    for (std::size_t i = 0; i < metadata.object_count(); ++i) {
      const metadata::ObjectView object = metadata.object(i);
      const bool has_bytes = object.size() > 0;
      if (has_bytes && is_lost(object.shard_ref()))
        report_.lost_objects.emplace_back(object.name());
    }
  }

  Status Publish() { return index_ ? PublishSame() : PublishNew(); }

  // A promotion that finds all blobs there.
  Status PublishSame() {
    std::vector<BlobId> blobs;
    for (const metadata::BlobPin& pin : pins_) blobs.push_back(pin.id);
    SEALPOINT_ASSIGN_OR_RETURN(
        const PromoteReport report,
        promote::PromoteGiven(
            {.from = to_, .to = to_},
            {.from_storage = to_storage_,
             .to_storage = to_storage_,
             .blobs = std::move(blobs),
             .limits = options_.limits},
            container::GivenFiles{.marker = marker_.bytes, .index = *index_->bytes}));
    report_.was_committed = report.was_committed;
    return {};
  }

  Status PublishNew() {
    const format::Marker& marker = marker_.marker;
    CommitOptions commit{.step = marker.step,
                         .provenance = {{"repack.from", marker.attempt.ToHex()},
                                        {"repack.how", "repair with a new index"}},
                         .allow_empty = true,
                         .limits = options_.limits,
                         .reuses_blobs = true};
    if (!marker.parent.is_zero()) commit.parent = ParentRef{marker.parent, marker.sequence - 1};
    SEALPOINT_ASSIGN_OR_RETURN(
        const MadeCheckpoint made,
        MakeOnce(*to_storage_, *target_, commit.provenance, options_.limits,
                 [&] { return Commit(*to_storage_, to_, commit, summaries_).status(); }));
    report_.was_committed = made.was_committed;
    report_.attempt = made.files.marker.marker.attempt;
    return {};
  }

  const std::vector<std::string> paths_;  // the first is that of the damaged one
  const std::string to_;
  const RepairOptions& options_;
  const int threads_;
  const std::shared_ptr<Storage> from_storage_;
  const std::shared_ptr<Storage> to_storage_;
  RepairReport& report_;
  pipeline::ByteMeter meter_;
  std::vector<RepairPlace> places_;
  container::MarkerFile marker_;
  std::optional<container::IndexFile> index_;
  std::vector<BlobSummary> summaries_;  // if there is no index
  std::vector<metadata::BlobPin> pins_;
  std::unique_ptr<Directory> target_;
  PublishMethod publish_ = PublishMethod::kNone;  // of the target
};

}  // namespace
}  // namespace internal::repack

RepairReport RepairCheckpoint(const RepairPaths& paths, const RepairOptions& options) {
  std::vector<std::string> sources{paths.damaged};
  sources.insert(sources.end(), paths.replicas.begin(), paths.replicas.end());
  RepairReport report;
  report.status = internal::repack::Repairing(std::move(sources), paths.to, options, report).Run();
  return report;
}

}  // namespace sealpoint
