// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_REPACK_H_
#define SEALPOINT_REPACK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/commit.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Functions that make new checkpoints from committed checkpoints: copy, merge, repair and thin.
// These functions never change a source; only ThinCheckpoint can delete its source. Single process;
// calls are independent of each other.
//
// A new checkpoint appears atomically. Every chunk is verified while it is read, and all blobs are
// durable before the marker is published. Before the marker is published, the destination is not a
// checkpoint. After a crash, the call can be repeated. The repeated call keeps finished blobs that
// are byte-for-byte copies, starts all other work again, and finally removes the files that the
// earlier call left.

namespace sealpoint {

// Options for reading the sources and writing the new checkpoint.
struct RepackOptions {
  std::shared_ptr<Storage> from_storage{};  // for all sources; DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  std::optional<Codec> codec{};             // empty: keep each tensor's codec
  int codec_level = 1;                      // zstd level
  // Chunk size of all tensors; see TensorSpec::chunk_size_bytes. 0: keep each tensor's chunk size.
  std::uint64_t chunk_size_bytes = 0;
  // Number of blobs, all of about the same size; tensors larger than a blob are split. 0: one blob
  // per thread. If the blobs would be smaller than 64 KiB, fewer blobs are made.
  std::uint32_t blob_count = 0;
  // Maximum size of a blob; see BlobWriterOptions::size_max_bytes. 0: the default of
  // size_max_bytes. A lower limit results in more blobs.
  std::uint64_t blob_size_max_bytes = 0;
  int threads = kThreadsAuto;  // to read, verify, encode and write; kThreadsAuto: 2
  // Maximum payload in memory for all threads together; at least 1 MiB per thread. In addition,
  // each thread needs memory for one chunk while it decodes or encodes, and for one upload part
  // (Storage::part_size_bytes).
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  Limits limits{};
  PhaseCallback on_progress{};  // kCopy: bytes written
  // If true, read the sources, but write and delete nothing. If the new checkpoint would be
  // identical to the source, the report has all fields. If not, the report has only step,
  // tensor_count, object_count and raw_bytes.
  bool dry_run = false;
};

struct RepackReport {
  AttemptId attempt{};  // attempt of the new checkpoint
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t tensor_count = 0;
  std::uint64_t object_count = 0;
  std::uint64_t blob_count = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t total_bytes = 0;  // total size of the blobs
  bool is_identical = false;      // identical to the source, byte for byte, with the same attempt
  bool was_committed = false;     // an earlier call committed the checkpoint
};

struct CopyOptions {
  // Patterns for the names of the tensors and objects to copy (Checkpoint::MatchTensors). Empty:
  // copy all of them.
  std::vector<std::string> match{};
  std::vector<std::string> drop{};  // patterns for names to exclude
  // If true, the copy of a checkpoint with a base (SaveOptions::base) stores all data. A checkpoint
  // without a base is copied as if this option were false.
  bool flatten = false;
  RepackOptions repack{};
};

// Copies a committed checkpoint to a different directory, which may be in a different storage. The
// options may set a pattern, a codec, a chunk size, a number of blobs, a size of blobs or
// `flatten`. If the options set none of these values, the result is the same checkpoint. Attempt,
// blobs, index and marker are then the same, byte for byte (see Promote). Such a copy of a
// checkpoint with a base needs the base next to it, under the name SeriesDirectoryName, and gives
// it a KEEP file. All other copies store all data and have no base.
//
// If the options set at least one of these values, the result is a new attempt with the selected
// content. The new attempt has the source's position in a series: step, parent, sequence, mesh,
// placements, attributes and provenance are copied from the source. `repack.from` (the attempt id
// of the source) and `repack.how` are added to the provenance. The creation time is new, and KEEP
// files are not copied. A tensor that fits into memory becomes one shard; a larger tensor keeps its
// shards, which are split if they do not fit into memory. Two checkpoints at the same position are
// a fork (R-SER-15), so copy into a different series, or delete the source.
//
// In releases 1.0.x, CopyCheckpoint and ThinCheckpoint can also read sources of format version 0
// (the draft); in later releases they cannot. The copy of such a source is always a new attempt.
//
// Errors: the errors of Checkpoint::Open and Read for the source, and for the base next to `to`;
// NotFound (a pattern that matches nothing), AlreadyExists (R-CMT-01: the destination has the
// marker of a different checkpoint), InvalidArgument (options; the patterns leave nothing to
// write), Unsupported (the destination has no exclusive publication), NoSpace, Io, Cancelled. If
// publication fails, OutcomeIsUnknown may be true; repeat the call to find out.
SEALPOINT_EXPORT Result<RepackReport> CopyCheckpoint(const CopyPaths& paths,
                                                     const CopyOptions& options = {});

struct MergeOptions {
  enum class Mode : std::uint8_t {
    // All sources must have the same tensors, in any layout. Tensors of f16, bf16, f32, f64, f8
    // (except f8_e8m0fnu) and complex dtypes are averaged; all other tensors must be equal in all
    // sources.
    kAverage,
    // The result has the union of the sources' tensors. If several sources have the same tensor,
    // the tensor must be equal in all of these sources.
    kUnion,
  };
  enum class Accumulate : std::uint8_t { kF32, kF64 };
  enum class Objects : std::uint8_t {
    kEqual,  // equal in all sources (kUnion: in all sources with the object)
    kFirst,  // kAverage: from the first source; kUnion: from the first source that has the object
  };
  Mode mode = Mode::kAverage;
  // For kAverage: one finite weight per source. The weights are not normalized, even if their sum
  // is not 1. Empty: 1/n for each of the n sources.
  std::vector<double> weights{};
  // Dtype of the sum w[0] * x[0] + w[1] * x[1] + …, which is computed from left to right. Each
  // product and each partial sum is rounded to this dtype, and the final sum is rounded to the
  // tensor's dtype. All roundings use Rounding::kNearestEven. If the sum is f64 and the tensor's
  // dtype is narrower than f32, the final sum is rounded to f32 first, as in PyTorch. Tensors of
  // f64 and c128 are always accumulated in f64.
  Accumulate accumulate = Accumulate::kF32;
  Objects objects = Objects::kEqual;
  // Metadata of the new checkpoint. If no step is set, the new checkpoint has the step of the first
  // source, and likewise its attributes. `repack.from` (the attempt ids of the sources, separated
  // by commas) and `repack.how` are added to the provenance.
  CommitOptions commit{};
  RepackOptions repack{};
};

// Merges one or more checkpoints into one. The layout, chunk size and codec of each tensor are
// copied from the first source that has the tensor. The memory use does not depend on the size of
// the checkpoints. Errors: the errors of CopyCheckpoint for each source; Mismatch (a tensor is
// missing in one source, has different dtypes or shapes, or is not averaged although its elements
// differ; an object differs), InvalidArgument (weights).
SEALPOINT_EXPORT Result<RepackReport> MergeCheckpoints(const std::vector<std::string>& sources,
                                                       const std::string& to,
                                                       const MergeOptions& options = {});

struct RepairPaths {
  std::string damaged{};
  std::vector<std::string> replicas{};
  std::string to{};
};

struct RepairOptions {
  std::shared_ptr<Storage> from_storage{};  // for all sources; DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  // If true and no location has the index that the marker pins, rebuild the index from the blob
  // manifests. Blob count and total size must match the marker. The result is then a new attempt at
  // the damaged checkpoint's position in its series. The new attempt has no mesh, no provenance
  // and no attributes of its own; those of tensors stay.
  bool rebuild_index = false;
  int threads = kThreadsAuto;  // copy threads; kThreadsAuto: 2
  // Maximum payload in memory for all threads together; at least 4 KiB per thread.
  std::uint64_t memory_budget_bytes = 16 * kMiB;
  Limits limits{};
  PhaseCallback on_progress{};  // kCopy: bytes written
};

struct RepairedBlob {
  BlobId id{};
  std::uint64_t size_bytes = 0;
  // Location of the intact copy. This location is the new directory if the blob had already been
  // copied, and empty if the blob is lost.
  std::string from{};
  std::vector<Status> problems{};  // errors of the locations tried before `from`
};

struct [[nodiscard]] RepairReport {
  // Success, or the reason why no checkpoint was made. Incomplete if a blob has no intact copy in
  // any location.
  Status status{};
  AttemptId attempt{};  // attempt of the repaired checkpoint; new if the index was rebuilt
  std::uint64_t step = kNoStep;
  std::string marker_from{};          // location of the intact marker
  std::string index_from{};           // location of the intact index; empty if rebuilt
  std::vector<RepairedBlob> blobs{};  // empty if was_committed
  // Sorted names of the tensors and objects that have elements or bytes in a lost blob.
  std::vector<std::string> lost_tensors{};
  std::vector<std::string> lost_objects{};
  bool was_committed = false;  // an earlier call committed the checkpoint
};

// Assembles an intact checkpoint from a damaged checkpoint and its copies. The call searches the
// locations in order: first `damaged`, then `replicas`. The call copies the marker, the index and
// each blob from the first location with an intact copy of that file. A replica is any directory
// that has some of the files under their original names; a replica need not be a checkpoint. The
// call never changes `damaged` and `replicas`; `to` is a new directory, in any storage. Unless the
// index is rebuilt, the result is the same attempt, byte for byte. Every byte is verified against
// the marker, as in Promote.
//
// If a blob is lost, all other blobs are copied, but no marker is published. To continue, call
// again with an additional replica. The contents of `to` are then verified again.
//
// Errors, in RepairReport::status: InvalidArgument (`to` is one of the locations; no location has a
// marker; `damaged` has no marker and the replicas have markers of different attempts; options),
// Incomplete (no location has an intact copy of the index or of a blob), Corrupt (a file in `to` is
// damaged), AlreadyExists (R-CMT-01: `to` has the marker of a different checkpoint), Unsupported,
// NoSpace, Io, Cancelled.
SEALPOINT_EXPORT RepairReport RepairCheckpoint(const RepairPaths& paths,
                                               const RepairOptions& options = {});

struct ThinOptions {
  // Patterns for the names of the tensors and objects to remove, as in CopyOptions::drop. At least
  // one pattern is required.
  std::vector<std::string> drop{};
  // If true, delete the source after the new checkpoint is made, as Series::Delete does.
  bool remove_source = false;
  RepackOptions repack{};
};

struct ThinReport {
  std::string path{};  // path of the new checkpoint
  RepackReport made{};
  bool is_source_removed = false;
};

// Copies a checkpoint but leaves out some tensors and objects, for example the optimizer state. The
// call can delete the source once the copy is durable, so that an intact checkpoint exists at all
// times. If `to` is empty, the copy is stored next to the source, under the name of the source plus
// "-thin". If the source is not deleted, the series then has a fork (R-SER-15). After an
// interruption, repeat the call to continue.
//
// Errors: the errors of CopyCheckpoint. If remove_source is set, two more kinds of errors are
// possible. InvalidArgument means that the source is the newest checkpoint or has a KEEP file, or
// that no later checkpoint of the series is intact. In this case, nothing was written. After an
// error of Series::Delete, both checkpoints exist.
SEALPOINT_EXPORT Result<ThinReport> ThinCheckpoint(const CopyPaths& paths,
                                                   const ThinOptions& options);

}  // namespace sealpoint

#endif  // SEALPOINT_REPACK_H_
