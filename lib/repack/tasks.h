// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_TASKS_H_
#define SEALPOINT_LIB_REPACK_TASKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/dtype.h"
#include "sealpoint/repack.h"
#include "sealpoint/status.h"

// What a new checkpoint is to hold, and of what it is made.

namespace sealpoint::internal::repack {

using Sources = std::vector<std::unique_ptr<Checkpoint>>;

struct TensorTask {
  TensorSpec spec{};
  std::vector<std::size_t> sources{};  // that have it, ascending; read from the first
  // The sum of all is written, which is accumulated in this dtype. Nothing: the others have to be
  // equal to the first.
  std::optional<DType> accumulator{};

  // What memory holds of an element while it is worked upon: as it was read first, and as it is
  // read from another source, or is to be written.
  std::uint64_t held_size() const {
    return accumulator ? DTypeSizeBytes(*accumulator) : spec.element_size;
  }
  std::uint64_t memory_per_element() const {
    return held_size() * (sources.size() > 1 || accumulator ? 2 : 1);
  }
};

struct ObjectTask {
  std::string name{};
  std::size_t source = 0;
};

struct RewriteJob {
  Sources sources{};
  std::vector<double> weights{};  // one per source if any tensor has an accumulator
  std::vector<TensorTask> tensors{};
  std::vector<ObjectTask> objects{};
  CommitOptions commit{};
};

// What a CopyMeter takes. Borrows both; `bytes_total` may be set later. Empty if there is none.
std::function<bool(std::uint64_t bytes)> WithTotal(const RepackProgress& on_progress,
                                                   const std::uint64_t& bytes_total);

// Opens the sources; together they hold a fourth of the budget. Errors: those of Checkpoint::Open,
// InvalidArgument (options).
Result<Sources> OpenSources(const std::vector<std::string>& paths, const RepackOptions& options);

struct CopySource {
  std::unique_ptr<Checkpoint> checkpoint;
  bool is_draft = false;
};
// As OpenSources for one, which may be of the draft (lib/repack/draft.h).
Result<CopySource> OpenCopySource(const std::string& path, const RepackOptions& options);

// How the tensor is written: as its source has it, but for what the options choose. Errors: those
// of Checkpoint::TensorChunks.
Result<TensorSpec> SpecOf(const Checkpoint& source, const TensorInfo& tensor,
                          const RepackOptions& options);

// `repack.from` and `repack.how`, after the entries of `provenance`, of which the reserved ones and
// those of an earlier repacking are left out.
ProvenanceList WithOrigin(const ProvenanceList& provenance, const Sources& sources,
                          const std::string& how);
// What the options choose, for `repack.how`: " codec=zstd …".
std::string DescribeChoices(const RepackOptions& options);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_TASKS_H_
