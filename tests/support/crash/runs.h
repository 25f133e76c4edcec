// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_RUNS_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_RUNS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sealpoint/commit.h"
#include "sealpoint/series.h"
#include "tests/support/crash/disk.h"
#include "tests/support/crash/states.h"
#include "tests/support/ranks/watched_communicator.h"

// The programs that the crash tests run, on a disk with one series, "run". The content of a
// checkpoint follows from its step: a tensor of bytes, divided among the ranks, a tensor without
// dimensions, and an object. It is small, so that every sector can be enumerated.

namespace sealpoint::testing {

inline constexpr std::string_view kCrashSeries = "run";

Bytes CrashTensorContent(std::uint64_t step);
std::string CrashObjectContent(std::uint64_t step);
Bytes CrashBaseContent();  // of the frozen tensor, if there is one: the same for each step

// All actors of the disk save together as ranks. Each rank reports its success to the disk. Returns
// one status per rank. `prepare` may change the communicator of each rank. `with_base`: the last
// rank also has a frozen tensor, whose blob is linked if the series has it.
std::vector<Status> SaveTogether(CrashDisk& disk, std::uint64_t step,
                                 const std::function<void(WatchedCommunicator&)>& prepare = {},
                                 bool with_base = false);
// One actor saves as the only rank, whatever other actors there are.
Status SaveAlone(CrashDisk& disk, std::uint64_t step, int actor, bool with_base = false);
// As SaveTogether, without a communicator: actors 1, 2, … write one blob each, actor 0 commits. A
// single actor does both. Returns the status of the first actor that fails.
Status WriteAndCommit(CrashDisk& disk, std::uint64_t step, const std::string& directory);
// What a single process does, whatever other actors there are.
Status WriteAndCommitAlone(CrashDisk& disk, std::uint64_t step, const std::string& directory,
                           int actor = 0, const AttemptId& attempt = {});
// Commits the blobs that are in the directory.
Status CommitWhatIsThere(CrashDisk& disk, std::uint64_t step, const std::string& directory,
                         int actor = 0);
// The first half of WriteAndCommit: the blobs of all writers, their summaries known to actor 0.
std::vector<BlobSummary> WriteBlobs(CrashDisk& disk, std::uint64_t step,
                                    const std::string& directory);

// An image with these steps saved in this order, whole and durable, by `ranks` ranks. The empty
// `start` says whether it is one of an object store.
CrashImage SeriesWith(const std::vector<std::uint64_t>& steps, int ranks = 1,
                      const CrashImage& start = {});
// As the last one, but only the blobs of `step` are there.
CrashImage SeriesWithAttempt(const std::vector<std::uint64_t>& steps, std::uint64_t attempt_step,
                             const CrashImage& start = {});

Series OpenCrashSeries(const CrashDisk& disk, int actor = 0);
// The name of the directory in the series whose marker has this step; if there is none, of the
// first one without a marker.
std::string NameOfStep(const CrashImage& image, std::uint64_t step);

// For other tests, and for replaying traces of a model against the library:
//
//   const CrashHistory save = RecordSave(2);
//   CrashOptions options;
//   options.is_lost = Dropping({"rank 1: sync directory run/step-*"});
//   ForEachCrashAt(save, CutAfter(save, "rank 0: publish COMMIT"), options, visit);
//
// Records one save of step 2 into a series that holds step 1.
CrashHistory RecordSave(int ranks, CrashDiskOptions options = {});
// The same with a blob of step 1 that is linked.
CrashHistory RecordLinkedSave(int ranks);
// True for the syncs with one of these descriptions (CrashOp::Describe).
std::function<bool(const CrashOp&)> Dropping(std::vector<std::string> descriptions);
// The least cut that holds the n-th operation with this description.
CrashCut CutAfter(const CrashHistory& history, const std::string& description, int nth = 1);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_RUNS_H_
