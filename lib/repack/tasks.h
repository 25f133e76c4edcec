// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_TASKS_H_
#define SEALPOINT_LIB_REPACK_TASKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/pipeline/thread_pool.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/dtype.h"
#include "sealpoint/repack.h"
#include "sealpoint/status.h"

// Content of a new checkpoint, and its sources.

namespace sealpoint::internal::repack {

using Sources = std::vector<std::unique_ptr<Checkpoint>>;

struct TensorTask {
  TensorSpec spec{};
  std::vector<std::size_t> sources{};  // that have it, ascending; read from the first
  // Dtype for accumulating the sum of all sources, which is written. Empty: all others must equal
  // the first.
  std::optional<DType> accumulator{};

  // Memory per element during processing: its first value, and in a second plane the value from
  // another source or the value to write.
  std::uint64_t held_size() const {
    return accumulator ? DTypeSizeBytes(*accumulator) : spec.element_size;
  }
  std::size_t plane_count() const { return sources.size() > 1 || accumulator ? 2 : 1; }
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

// Number of threads of a call; `options` were checked.
inline int ThreadsOf(const RepackOptions& options) {
  return pipeline::ChosenThreads(options.threads, 2);
}

// Opens the sources; together they use a quarter of the budget. Errors: those of Checkpoint::Open,
// InvalidArgument (options).
Result<Sources> OpenSources(const std::vector<std::string>& paths, const RepackOptions& options);

struct CopySource {
  std::unique_ptr<Checkpoint> checkpoint;
  bool is_draft = false;
};
// As OpenSources for one, which may be of the draft (lib/repack/draft.h).
Result<CopySource> OpenCopySource(const std::string& path, const RepackOptions& options);

// The tensor's spec for writing: that of its source, except for values set in the options. Errors:
// those of Checkpoint::TensorChunks.
Result<TensorSpec> SpecOf(const Checkpoint& source, const TensorInfo& tensor,
                          const RepackOptions& options);

// `repack.from` and `repack.how`, appended to the entries of `provenance` without reserved entries
// and without entries of an earlier repacking.
ProvenanceList WithOrigin(const ProvenanceList& provenance, const Sources& sources,
                          const std::string& how);
// The values set in the options, for `repack.how`: " codec=zstd …".
std::string DescribeChoices(const RepackOptions& options);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_TASKS_H_
