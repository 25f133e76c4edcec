// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STATE_SAVE_JOB_H_
#define SEALPOINT_TESTS_SUPPORT_STATE_SAVE_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/ranks/watched_communicator.h"
#include "tests/support/state/save_in_mode.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {

// One rank of a job that saves: a directory that all ranks see, and a storage, engine and saver of
// its own. Made and destroyed by all ranks together.
class SaveJob {
 public:
  explicit SaveJob(Communicator& job_comm, SaverOptions options = {});
  ~SaveJob();

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  int rank() const { return job.rank(); }
  int size() const { return job.size(); }
  bool is_last() const { return rank() == size() - 1; }
  Result<CommitInfo> Save(const Declaration& declaration, const std::string& directory = "ckpt");
  // Binds every slot to the part of Content(name) that it holds, and every object to its name.
  Result<CommitInfo> Save(const Declaration& declaration, const SaveTarget& target,
                          const SaveOptions& options = {});
  // True if all ranks have the same error.
  void ExpectSameOnAllRanks(const Status& status);
  void Barrier() { static_cast<void>(job.Barrier()); }

  Communicator& job;
  WatchedCommunicator comm;
  const std::shared_ptr<Storage> posix = PosixStorage();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(posix);
  const std::unique_ptr<Engine> engine = SmallEngine(storage, BufferCountForSaves(), 16 * kKiB);
  std::unique_ptr<Saver> saver;

 private:
  std::optional<TempDir> dir_;  // on rank 0
  std::string root_;
};

// Runs a job on every number of ranks from `size_min` on, until one fails.
void OnJobs(const std::function<void(SaveJob&)>& body, int size_min = 1);

// 0, 1, … up to the last.
std::vector<int> AllRanks(const Communicator& comm);

// What tensor `name` of `byte_count` bytes holds in these tests.
Bytes Content(const std::string& name, std::uint64_t byte_count);

// Rows of "w" on each rank, "shared" on all of them, and an object per rank.
Declaration UsualDeclaration(const Communicator& comm);
inline constexpr std::uint64_t kUsualRows = 13;
inline constexpr std::uint64_t kUsualColumns = 400;
inline constexpr std::uint64_t kSharedSize = 40000;

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STATE_SAVE_JOB_H_
