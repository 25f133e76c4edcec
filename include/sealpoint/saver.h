// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_SAVER_H_
#define SEALPOINT_SAVER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/commit.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/engine.h"
#include "sealpoint/export.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Where a save goes.
struct SEALPOINT_EXPORT SaveTarget {
  // A new directory `step-<12 digits>-<8 hex of the attempt>` in this series; the parent is the
  // newest committed checkpoint there.
  static SaveTarget InSeries(std::string series_directory);
  // Exactly this directory, made where it is missing; `parent` as the caller knows it.
  static SaveTarget Directory(std::string directory, std::optional<ParentRef> parent = {});

  std::string path{};
  bool is_series = false;
  std::optional<ParentRef> parent{};
};

struct SaveOptions {
  std::uint64_t step = kNoStep;  // required in a series
  MeshAxes mesh{};
  ProvenanceList provenance{};  // rank 0's is stored
};

struct SaverOptions {
  // See BlobWriterOptions::size_max_bytes.
  std::uint64_t blob_size_max_bytes = 64 * kGiB;
  // Ranks that write payload, ascending (one per node, say); empty: all. The same on all ranks.
  // Each region and object must be held by one of them: payload is never sent to another rank.
  std::vector<int> writer_ranks{};
  // Time that one collective call may wait for the other ranks; zero: for ever. A save whose wait
  // ends so returns Timeout (on this rank), and the saver refuses further use. Set on the
  // communicator when the saver is made.
  std::chrono::milliseconds deadline{0};
  Limits limits{};
  PhaseCallback on_phase{};
};

// The collective save: preflight, plan, write, agree, commit (spec/commit.md). One per training
// run.
//
// All ranks of the communicator call Create and Save in the same order. Every rank runs the same
// sequence of collectives whatever its own outcome; a failure of one rank becomes the same error on
// all, naming the first cause (rank, host, operation, path, errno). After such a failure each rank
// has removed its own files and no marker exists, unless OutcomeIsUnknown. Where the communicator
// itself fails, ranks may return different results: once a rank handed rank 0 what it needs, the
// outcome is unknown to it (Comm or Timeout, with OutcomeIsUnknown). Payload never travels through
// the communicator. Thread safety: one call at a time. Engine and communicator outlive the saver.
class SEALPOINT_EXPORT Saver {
 public:
  static Result<std::unique_ptr<Saver>> Create(Engine& engine, Communicator& communicator,
                                               SaverOptions options = {});
  virtual ~Saver() = default;
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Saves what `sources` (bound to its declaration) holds. Before the first payload byte is
  // written, all ranks know that the declarations agree and that every element is held (by exactly
  // one rank or one replica group). Errors: those of Commit and BlobWriter; InvalidArgument also
  // for ranks that disagree on target, step or declaration; Comm, Timeout. Durability: after
  // success on any rank the checkpoint survives a crash.
  virtual Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                                  const Sources& sources) = 0;

 protected:
  Saver() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAVER_H_
