// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/destination.h"

#include <chrono>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/storage/place.h"

namespace sealpoint::internal::saver {
namespace {

class DirectDestination final : public Destination {
 public:
  DirectDestination(Storage& storage, const SaveTarget& target, const SaveOptions& options)
      : Destination(storage, target, options, target.path(), /*may_link=*/true) {}

  Status Preflight(Communicator& comm, const Status& local_status,
                   std::uint64_t planned_bytes) override;
  Status CheckFreeSpace(Communicator& comm, std::uint64_t tensor_bytes) const override;
  Result<CommitInfo> CommitOnRoot(Communicator& /*comm*/, const CommitSteps& commit) override {
    return commit({});
  }
  void RemoveDirectories(int rank) override {
    if (rank == 0) RemoveEmptyDirectories(attempt_);
  }

 private:
  Status CheckSpaceFor(std::uint64_t bytes, std::uint64_t files) const;
};

Status DirectDestination::Preflight(Communicator& comm, const Status& local_status,
                                    std::uint64_t planned_bytes) {
  SEALPOINT_ASSIGN_OR_RETURN(
      attempt_, RunPreflight(storage_, comm, target_, options_, local_status, planned_bytes));
  return {};
}

// The file system is one: rank 0 compares the sum of all ranks. Usually the preflight has shown
// that there is room for more than that.
Status DirectDestination::CheckFreeSpace(Communicator& comm, std::uint64_t tensor_bytes) const {
  if (attempt_.is_sure_to_fit) return {};
  Bytes local_bytes;
  WireWriter(local_bytes).Put(tensor_bytes);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.Gather(local_bytes, 0));
  Status status;
  std::uint64_t needed = 0;
  for (const Bytes& bytes : all) {
    const auto number = WireReader(bytes).Number();
    if (!number.ok() && status.ok()) status = number.error();
    needed += number.value_or(0);
  }
  if (comm.rank() == 0 && status.ok()) {
    status = CheckSpaceFor(needed, FileCount(comm.size()));
  }
  return AgreeOnStatus(comm, status);
}

Status DirectDestination::CheckSpaceFor(std::uint64_t bytes, std::uint64_t files) const {
  SEALPOINT_ASSIGN_OR_RETURN(const SpaceInfo space, attempt_.opened->FreeSpace());
  if (space.free_bytes < bytes || space.free_inodes < files) {
    return MakeError(Code::kNoSpace, "the save needs ", bytes, " bytes and ", files,
                     " files; free are ", space.free_bytes, " bytes and ", space.free_inodes,
                     " inodes")
        .AtRule("R-CMT-08")
        .AtPath(attempt_.directory);
  }
  return {};
}

// Success for any other error.
Status FailureOfComm(const Status& status) {
  return comm::IsCommFailure(status) ? status : Status();
}

class StagedDestination final : public Destination {
 public:
  StagedDestination(Storage& storage, const SaveTarget& target, const SaveOptions& options,
                    std::shared_ptr<PromotionQueue> promotions)
      : Destination(storage, target, options, target.local(), /*may_link=*/false),
        promotions_(std::move(promotions)) {}

  Status CheckArguments() const override {
    return storage::CheckApart(storage_, target_.local(), storage_, target_.path());
  }
  Status MakeRoom(const std::function<Status()>& check) override {
    return promotions_->MakeRoom(check);
  }
  Status Preflight(Communicator& comm, const Status& local_status,
                   std::uint64_t planned_bytes) override;
  Status CheckFreeSpace(Communicator& comm, std::uint64_t tensor_bytes) const override {
    return AgreeOnStatus(comm, CheckLocalSpace(tensor_bytes));
  }
  Status NoteBlobs(const std::vector<BlobSummary>& summaries) override;
  Result<CommitInfo> CommitOnRoot(Communicator& comm, const CommitSteps& commit) override;
  Status FollowCommit(Communicator& comm) override;
  void Publish(int rank) override;
  void Promote() override { promotions_->Add(std::move(staged_)); }
  void RemoveFiles() override {
    if (!own_files_.empty()) writer::RemoveOwnFiles(*attempt_.opened, own_files_);
  }
  void RemoveDirectories(int /*rank*/) override { RemoveEmptyDirectories(attempt_); }

 private:
  Status CheckLocalSpace(std::uint64_t tensor_bytes) const;
  // R-STG-01. Within the commit of rank 0: sends index and marker to all ranks.
  Status SendToNodes(Communicator& comm, ByteSpan index_file, ByteSpan marker);
  // Places index and marker on this node.
  Status PlaceOnNode(ByteSpan sent);

  const std::shared_ptr<PromotionQueue> promotions_;
  StagedCommit staged_;
  std::vector<std::string> own_files_{};  // that PlaceOnNode made
};

Status StagedDestination::Preflight(Communicator& comm, const Status& local_status,
                                    std::uint64_t /*planned_bytes*/) {
  SEALPOINT_ASSIGN_OR_RETURN(attempt_,
                             RunStagedPreflight(storage_, comm, target_, options_, local_status));
  return {};
}

// Each rank for itself: which of them share a disk is not known, and this is an early answer only.
Status StagedDestination::CheckLocalSpace(std::uint64_t tensor_bytes) const {
  SEALPOINT_ASSIGN_OR_RETURN(const SpaceInfo space, attempt_.opened->FreeSpace());
  if (space.free_bytes >= tensor_bytes) return {};
  return MakeError(Code::kNoSpace, "the save needs ", tensor_bytes,
                   " bytes of local storage; free: ", space.free_bytes)
      .AtRule("R-CMT-08")
      .AtPath(attempt_.directory);
}

// R-CMT-02, by who wrote them: rank 0 may not see them.
Status StagedDestination::NoteBlobs(const std::vector<BlobSummary>& summaries) {
  for (const BlobSummary& summary : summaries) staged_.blobs.push_back(summary.blob());
  SEALPOINT_ASSIGN_OR_RETURN(const auto blobs, writer::CommittedBlobsOf(summaries));
  return writer::CheckBlobsAreThere(*attempt_.opened, blobs);
}

Result<CommitInfo> StagedDestination::CommitOnRoot(Communicator& comm, const CommitSteps& commit) {
  bool was_sent = false;
  auto committed = commit([&](ByteSpan index_file, ByteSpan marker) {
    was_sent = true;
    return SendToNodes(comm, index_file, marker);
  });
  if (committed.ok()) committed->directory = attempt_.final_directory;
  if (was_sent) return committed;
  // The others wait for index and marker.
  const auto outcome = comm::BroadcastResult(comm, 0, committed.status());
  return comm::IsCommFailure(outcome.status()) ? outcome.error() : committed.error();
}

Status StagedDestination::SendToNodes(Communicator& comm, ByteSpan index_file, ByteSpan marker) {
  staged_.is_first = true;
  staged_.index.assign(index_file.begin(), index_file.end());
  staged_.marker.assign(marker.begin(), marker.end());
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(AsText(marker));
  out.Put(AsText(index_file));
  SEALPOINT_RETURN_IF_ERROR(comm::BroadcastResult(comm, 0, std::move(bytes)).status());
  return AgreeOnStatus(comm, {});
}

// The ranks of a node find out by exclusive creation which of them places the files there. All of
// them agree afterwards, so that the one is done before any of them goes on.
Status StagedDestination::FollowCommit(Communicator& comm) {
  const auto sent = comm::BroadcastResult(comm, 0, Bytes());
  if (!sent.ok()) return FailureOfComm(sent.error());
  const Status placed = PlaceOnNode(*sent);
  const Status agreed = AgreeOnStatus(comm, placed);
  return FailureOfComm(agreed);
}

Status StagedDestination::PlaceOnNode(ByteSpan sent) {
  WireReader in(sent);
  SEALPOINT_ASSIGN_OR_RETURN(const std::string marker, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan index, in.Span());
  staged_.marker.assign(AsBytes(marker).begin(), AsBytes(marker).end());
  staged_.index.assign(index.begin(), index.end());
  Status placed = writer::WriteIndexAndMarker(*attempt_.opened, attempt_.publish, attempt_.id,
                                              staged_.index, staged_.marker, own_files_);
  staged_.is_first = placed.ok();
  return placed.code() == Code::kAlreadyExists ? Status() : placed;
}

// The checkpoint is committed by now, by the node of rank 0. A node that cannot publish has the
// unpublished marker, which a restart finds, and promotes with the bytes that this rank holds.
void StagedDestination::Publish(int rank) {
  staged_.local = attempt_.directory;
  staged_.final = attempt_.final_directory;
  staged_.step = options_.step;
  staged_.since = std::chrono::steady_clock::now();
  if (rank == 0 || !staged_.is_first) return;
  static_cast<void>(
      writer::PublishMarker(*attempt_.opened, attempt_.publish, attempt_.id, staged_.marker));
}

}  // namespace

std::unique_ptr<Destination> MakeDestination(Storage& storage, const SaveTarget& target,
                                             const SaveOptions& options,
                                             std::shared_ptr<PromotionQueue> promotions) {
  if (!target.is_staged()) {
    return std::make_unique<DirectDestination>(storage, target, options);
  }
  return std::make_unique<StagedDestination>(storage, target, options, std::move(promotions));
}

}  // namespace sealpoint::internal::saver
