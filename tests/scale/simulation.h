// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SCALE_SIMULATION_H_
#define SEALPOINT_TESTS_SCALE_SIMULATION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/scale/hollow_blob.h"
#include "tests/scale/scenario.h"

namespace sealpoint::testing {

struct Spread {
  double sum = 0;
  double max = 0;
  std::uint64_t count = 0;
  void Add(double value);
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// What a save of all ranks and a load of one cost. Seconds are of one core.
struct ScaleFigures {
  std::uint64_t ranks = 0;
  std::uint64_t slots_max = 0;  // regions that one rank holds
  Spread declare_seconds{};     // PlaceTensor and Declaration::Add, per rank; once per run
  Spread first_plan_seconds{};  // digest, plan and messages to the owners, per rank
  Spread later_plan_seconds{};  // digest, per rank
  Spread declared_bytes{};      // to all owners, per rank
  Spread owned_bytes{};         // from all ranks, per owner
  double owner_seconds = 0;     // of the owner with the most names
  bool adds_up = false;         // exact tiling, by the sums of all ranks

  std::uint64_t blobs = 0;
  std::uint64_t shards = 0;
  std::uint64_t records = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t summary_bytes = 0;   // of all ranks together
  Spread entry_bytes{};              // to all owners, per rank
  Spread merged_bytes{};             // from all ranks, per owner
  Spread merge_seconds{};            // per owner
  std::uint64_t gathered_bytes = 0;  // at rank 0
  double join_seconds = 0;
  double check_seconds = 0;
  std::uint64_t commit_memory_bytes = 0;  // at rank 0, beside what was gathered
  std::uint64_t index_bytes = 0;
  double bytes_per_shard = 0;
  double open_seconds = 0;
  std::uint64_t open_memory_bytes = 0;
};

struct LoadFigures {
  double seconds = 0;
  std::uint64_t memory_bytes = 0;
  PlanSummary plan{};
};

// The ranks of a scenario, one after the other in this process, through the real planner, owners,
// merge, commit and readers; no byte of payload exists.
class Simulation {
 public:
  struct Options {
    int threads = 1;
    bool with_agreement = true;  // of declarations
    // Only every so-many-th rank is planned: figures per rank, and nothing to commit.
    std::size_t stride = 1;
  };
  Simulation(Scenario scenario, Options options);

  // Declares, plans and lays out the blobs of every rank.
  void PlanAndWrite();
  // Commits by the way of the collective save; then the checkpoint is there.
  void MergeAndCommit();
  // The index (behind its header) as Commit makes it of all summaries.
  Bytes IndexOfSummaries() const;
  void Open();
  // What a rank of another job would read. `group`: only tensors of this group, or all.
  LoadFigures PlanLoad(const Scenario& target, int rank, const std::string& group) const;

  const ScaleFigures& figures() const { return figures_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

 private:
  struct RankCost;
  int size() const { return scenario_.mesh.size(); }
  Declaration Declare(int rank) const;
  std::vector<HollowBlob> PlanRank(int rank, RankCost& cost);
  void Note(int rank, const RankCost& cost);
  void ChooseOwner();
  void MeasureCheck();
  std::vector<Bytes> MergeAll();

  const Scenario scenario_;
  const Options options_;
  const AttemptId attempt_;
  const std::shared_ptr<HollowStorage> storage_ = std::make_shared<HollowStorage>();
  ScaleFigures figures_;
  std::mutex mutex_;
  std::vector<std::vector<BlobSummary>> summaries_;  // by rank
  std::size_t checker_ = 0;                          // of the most names
  std::vector<Bytes> to_owner_;                      // by rank
  std::vector<Bytes> to_all_;                        // by rank
  std::vector<std::uint64_t> owned_bytes_;           // by owner
  std::unique_ptr<Checkpoint> checkpoint_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SCALE_SIMULATION_H_
