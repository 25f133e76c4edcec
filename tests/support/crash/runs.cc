// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/runs.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "lib/base/macros.h"
#include "sealpoint/saver.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/crash/communicator.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kTensorSize = 5000;  // two chunks
constexpr std::uint64_t kBufferSize = 4096;  // several writes per blob
constexpr int kBufferCount = 6;              // also for the parts of two uploads

// The part of the tensor that one of `count` writers has.
Region PartOf(std::uint64_t writer, std::uint64_t count) {
  return Slice(kTensorSize * writer / count, kTensorSize * (writer + 1) / count);
}

TensorSpec ScalarSpec() {
  return {.name = "scalar", .dtype = DType::kUInt64, .shape = {}, .group = "state"};
}

TensorSpec BaseSpec() {
  TensorSpec base = ByteTensor("base", kTensorSize);
  base.group = "frozen";
  return base;
}

Declaration DeclarationOf(int rank, int size, bool with_base) {
  Declaration declaration;
  const auto writer = static_cast<std::uint64_t>(rank);
  declaration
      .Add({.tensor = ByteTensor("w", kTensorSize),
            .region = PartOf(writer, static_cast<std::uint64_t>(size))})
      .value();
  if (rank == 0) declaration.Add({.tensor = ScalarSpec()}).value();
  if (rank == size - 1 && with_base) declaration.Add({.tensor = BaseSpec()}).value();
  if (rank == size - 1) {
    const Status added = declaration.AddObject({.name = "rng", .media_type = "text/plain"});
    SEALPOINT_CHECK(added.ok());
  }
  return declaration;
}

void Check(const Status& status) {
  if (!status.ok()) AbortOnBadResultAccess(status);
}

Status SaveAsActor(CrashDisk& disk, int actor, Communicator& comm, std::uint64_t step,
                   bool with_base = false) {
  const int rank = comm.rank();
  const auto engine = SmallEngine(disk.View(actor), kBufferCount, kBufferSize);
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto saver,
      Saver::Create(*engine, comm,
                    {.frozen_groups = {"frozen"}, .deadline = std::chrono::minutes(1)}));
  const Declaration declaration = DeclarationOf(rank, comm.size(), with_base);
  const Bytes base = CrashBaseContent();
  const Bytes whole = CrashTensorContent(step);
  const std::string object = CrashObjectContent(step);
  const Region mine = *declaration.tensors()[0].region;
  Sources sources(declaration);
  Check(sources.Bind(
      "w", MemoryView::Host(std::span(whole).subspan(mine.box.offset[0], mine.run.size()))));
  if (rank == 0) Check(sources.Bind("scalar", MemoryView::Host(std::span(&step, 1))));
  if (rank == comm.size() - 1 && with_base)
    Check(sources.Bind("base", MemoryView::Host(std::span(base))));
  if (rank == comm.size() - 1) Check(sources.BindObject("rng", AsBytes(object)));
  const auto saved =
      saver->Save(SaveTarget::InSeries(std::string(kCrashSeries)), {.step = step}, sources);
  disk.Tell(actor, saved.status());
  return saved.status();
}

Status SaveAsRank(CrashDisk& disk, Communicator& watched, std::uint64_t step, bool with_base) {
  CrashCommunicator comm(watched, disk);
  return SaveAsActor(disk, comm.rank(), comm, step, with_base);
}

Result<std::vector<BlobSummary>> WriteBlob(CrashDisk& disk, int actor, std::uint64_t step,
                                           const std::string& directory, std::uint64_t writer,
                                           std::uint64_t writers) {
  const auto engine = SmallEngine(disk.View(actor), kBufferCount, kBufferSize);
  SEALPOINT_ASSIGN_OR_RETURN(const auto blob,
                             BlobWriter::Create(*engine, directory, {.step = step}));
  const Bytes whole = CrashTensorContent(step);
  const Region part = PartOf(writer, writers);
  SEALPOINT_RETURN_IF_ERROR(
      blob->Add(ByteTensor("w", kTensorSize), part,
                MemoryView::Host(std::span(whole).subspan(part.box.offset[0], part.run.size()))));
  if (writer == 0) {
    SEALPOINT_RETURN_IF_ERROR(
        blob->Add(ScalarSpec(), Region::Whole({}), MemoryView::Host(std::span(&step, 1))));
    const std::string object = CrashObjectContent(step);
    SEALPOINT_RETURN_IF_ERROR(
        blob->AddObject({.name = "rng", .media_type = "text/plain"}, AsBytes(object)));
  }
  return blob->Finish();
}

std::optional<ParentRef> ParentIn(const CrashDisk& disk, int actor) {
  const auto newest = OpenCrashSeries(disk, actor).Newest();
  if (!newest.ok()) return std::nullopt;
  return ParentRef{newest->entry.attempt, newest->entry.sequence};
}

}  // namespace

Bytes CrashTensorContent(std::uint64_t step) { return NoiseBytes(step, kTensorSize); }

Bytes CrashBaseContent() { return NoiseBytes(99, kTensorSize); }

std::string CrashObjectContent(std::uint64_t step) {
  return "object of step " + std::to_string(step);
}

std::vector<Status> SaveTogether(CrashDisk& disk, std::uint64_t step,
                                 const std::function<void(WatchedCommunicator&)>& prepare,
                                 bool with_base) {
  const int ranks = disk.actor_count();
  std::vector<Status> results(static_cast<std::size_t>(ranks));
  WithRanks(ranks, [&](Communicator& comm) {
    WatchedCommunicator watched(comm);
    if (prepare) prepare(watched);
    results[static_cast<std::size_t>(comm.rank())] = SaveAsRank(disk, watched, step, with_base);
  });
  return results;
}

Status SaveAlone(CrashDisk& disk, std::uint64_t step, int actor, bool with_base) {
  const auto comm = SelfCommunicator();
  return SaveAsActor(disk, actor, *comm, step, with_base);
}

std::vector<BlobSummary> WriteBlobs(CrashDisk& disk, std::uint64_t step,
                                    const std::string& directory) {
  const int actors = disk.actor_count();
  if (actors == 1) return WriteBlob(disk, 0, step, directory, 0, 1).value();
  const auto writers = static_cast<std::uint64_t>(actors - 1);
  std::vector<BlobSummary> summaries;
  for (int actor = 1; actor < actors; ++actor) {
    disk.PutBefore(0, actor);
    const auto writer = static_cast<std::uint64_t>(actor - 1);
    for (const BlobSummary& summary :
         WriteBlob(disk, actor, step, directory, writer, writers).value()) {
      summaries.push_back(summary);
    }
  }
  for (int actor = 1; actor < actors; ++actor) disk.PutBefore(actor, 0);
  return summaries;
}

namespace {

Status CommitAs(CrashDisk& disk, int actor, std::uint64_t step, const std::string& directory,
                const std::function<Result<std::vector<BlobSummary>>()>& write,
                const AttemptId& attempt = {}) {
  const auto storage = disk.View(actor);
  const auto parent = ParentIn(disk, actor);
  Result<CommitInfo> committed = [&]() -> Result<CommitInfo> {
    SEALPOINT_RETURN_IF_ERROR(storage->CreateDirectories(directory));
    SEALPOINT_ASSIGN_OR_RETURN(const auto summaries, write());
    return Commit(*storage, directory, {.attempt = attempt, .step = step, .parent = parent},
                  summaries);
  }();
  disk.Tell(actor, committed.status());
  return committed.status();
}

}  // namespace

Status WriteAndCommit(CrashDisk& disk, std::uint64_t step, const std::string& directory) {
  return CommitAs(disk, 0, step, directory, [&] { return WriteBlobs(disk, step, directory); });
}

Status WriteAndCommitAlone(CrashDisk& disk, std::uint64_t step, const std::string& directory,
                           int actor, const AttemptId& attempt) {
  return CommitAs(
      disk, actor, step, directory, [&] { return WriteBlob(disk, actor, step, directory, 0, 1); },
      attempt);
}

Status CommitWhatIsThere(CrashDisk& disk, std::uint64_t step, const std::string& directory,
                         int actor) {
  const auto storage = disk.View(actor);
  return CommitAs(disk, actor, step, directory, [&]() -> Result<std::vector<BlobSummary>> {
    std::vector<BlobSummary> summaries;
    SEALPOINT_ASSIGN_OR_RETURN(const auto blobs, ListBlobs(*storage, directory));
    for (const BlobId& blob : blobs) {
      SEALPOINT_ASSIGN_OR_RETURN(auto summary, ReadSummary(*storage, directory, blob));
      summaries.push_back(std::move(summary));
    }
    return summaries;
  });
}

CrashImage SeriesWith(const std::vector<std::uint64_t>& steps, int ranks, const CrashImage& start) {
  CrashDisk disk(ranks, start);
  for (const std::uint64_t step : steps) {
    for (const Status& saved : SaveTogether(disk, step)) Check(saved);
  }
  return disk.Now();
}

CrashImage SeriesWithAttempt(const std::vector<std::uint64_t>& steps, std::uint64_t attempt_step,
                             const CrashImage& start) {
  CrashDisk disk(1, SeriesWith(steps, 1, start));
  const std::string directory =
      JoinPath(kCrashSeries, SeriesDirectoryName(attempt_step, AttemptId::Random().value()));
  Check(disk.View(0)->CreateDirectories(directory));
  WriteBlobs(disk, attempt_step, directory);
  return disk.Now();
}

Series OpenCrashSeries(const CrashDisk& disk, int actor) {
  return Series(std::string(kCrashSeries), disk.View(actor));
}

std::string NameOfStep(const CrashImage& image, std::uint64_t step) {
  const SeriesListing listing = Series(std::string(kCrashSeries), StorageOf(image)).List().value();
  std::string name;
  for (const SeriesEntry& entry : listing.entries) {
    const bool is_committed = entry.verdict == Verdict::kCommitted;
    if (is_committed && entry.step == step) return entry.name;
    if (!is_committed && name.empty()) name = entry.name;
  }
  return name;
}

CrashHistory RecordSave(int ranks, CrashDiskOptions options) {
  CrashDisk disk(ranks, SeriesWith({1}), options);
  for (const Status& saved : SaveTogether(disk, 2)) Check(saved);
  return disk.history();
}

CrashHistory RecordLinkedSave(int ranks) {
  CrashDisk first(ranks);
  for (const Status& saved : SaveTogether(first, 1, {}, true)) Check(saved);
  CrashDisk disk(ranks, first.Now());
  for (const Status& saved : SaveTogether(disk, 2, {}, true)) Check(saved);
  return disk.history();
}

std::function<bool(const CrashOp&)> Dropping(std::vector<std::string> descriptions) {
  return [descriptions = std::move(descriptions)](const CrashOp& op) {
    return std::find(descriptions.begin(), descriptions.end(), op.Describe()) != descriptions.end();
  };
}

CrashCut CutAfter(const CrashHistory& history, const std::string& description, int nth) {
  const std::size_t at = history.Find(description, nth);
  SEALPOINT_CHECK(at < history.ops.size());
  return CutOf(history, history.ops[at].clock);
}

}  // namespace sealpoint::testing
