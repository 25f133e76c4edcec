// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_MPI_SAVE_JOB_H_
#define SEALPOINT_TESTS_MPI_SAVE_JOB_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"
#include "tests/support/failing_storage.h"
#include "tests/support/saved_state.h"
#include "tests/support/temp_dir.h"

namespace sealpoint::testing {

// Another communicator that counts exchanges and can break at the end of one call.
class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(Communicator& inner) : inner_(inner) {}

  int exchange_count() const { return exchange_count_; }
  // The n-th Gather or Broadcast from now on (from 1) takes effect and then returns Timeout; so do
  // all calls behind it, without taking effect.
  void BreakAfterGather(int nth) { gathers_left_ = nth; }
  void BreakAfterBroadcast(int nth) { broadcasts_left_ = nth; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& host() const override { return inner_.host(); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }
  Status Barrier() override;
  Status Broadcast(Bytes& bytes, int root) override;
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override;
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override;
  Result<std::vector<Bytes>> AllToAll(const std::vector<Bytes>& outgoing) override;
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override;

 private:
  Communicator& inner_;
  int exchange_count_ = 0;
  int gathers_left_ = 0;
  int broadcasts_left_ = 0;
  Status broken_;
};

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
  // Has the same error on all ranks?
  void ExpectSameOnAllRanks(const Status& status);
  void Barrier() { static_cast<void>(job.Barrier()); }

  Communicator& job;
  WatchedCommunicator comm;
  const std::shared_ptr<Storage> posix = PosixStorage();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(posix);
  const std::unique_ptr<Engine> engine = SmallEngine(storage, 4, 16 * kKiB);
  std::unique_ptr<Saver> saver;

 private:
  std::optional<TempDir> dir_;  // on rank 0
  std::string root_;
};

// What tensor `name` of `byte_count` bytes holds in these tests.
Bytes Content(const std::string& name, std::uint64_t byte_count);

// Rows of "w" on each rank, "shared" on all of them, and an object per rank.
Declaration UsualDeclaration(const Communicator& comm);
inline constexpr std::uint64_t kUsualRows = 13;
inline constexpr std::uint64_t kUsualColumns = 400;
inline constexpr std::uint64_t kSharedSize = 40000;

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_MPI_SAVE_JOB_H_
