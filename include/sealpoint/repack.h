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
#include "sealpoint/codec.h"
#include "sealpoint/commit.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

// Makes new checkpoints from committed ones: copy, merge, repair, thin. Sources are never changed.
// Single process; calls are independent of each other.
//
// Results appear atomically: every chunk is verified while it is read, and all blobs are durable
// before the marker is published. Until then the destination is not a checkpoint. A call can be
// repeated after a crash: unchanged blobs are not copied again, all other work starts again, and
// files left by the earlier call are removed at the end.

namespace sealpoint {

// Options for reading and writing a new checkpoint.
struct RepackOptions {
  std::shared_ptr<Storage> from_storage{};  // for all sources; DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  std::optional<Codec> codec{};             // empty: keep each tensor's codec
  int codec_level = 1;                      // zstd level
  // See TensorSpec::chunk_size_bytes. 0: keep each tensor's chunk size.
  std::uint64_t chunk_size_bytes = 0;
  // Number of blobs of about the same size; larger tensors are split. 0: one per thread. Fewer are
  // made if they would be smaller than 64 KiB.
  std::uint32_t blob_count = 0;
  // See BlobWriterOptions::size_max_bytes; 0: its default. A lower limit makes more blobs.
  std::uint64_t blob_size_max_bytes = 0;
  int threads = kThreadsAuto;  // read, verify, encode and write; kThreadsAuto: 2
  // Payload that all threads may hold in total; at least 1 MiB per thread. Each thread also needs
  // one chunk while decoding or encoding, and one part of an upload (Storage::part_size_bytes).
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  Limits limits{};
  PhaseCallback on_progress{};  // kCopy: bytes written
  // Read the sources, but write and delete nothing. The report has step, tensors, objects and
  // raw_bytes of the new checkpoint; if it would be identical to the source, all fields.
  bool dry_run = false;
};

struct RepackReport {
  AttemptId attempt{};  // of the new checkpoint
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t tensor_count = 0;
  std::uint64_t object_count = 0;
  std::uint64_t blob_count = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t total_bytes = 0;  // of the blobs
  bool is_identical = false;      // the same checkpoint, byte for byte, under the same attempt
  bool was_committed = false;     // an earlier call committed it
};

struct CopyOptions {
  // Patterns of tensors and objects to copy (Checkpoint::MatchTensors). Empty: all.
  std::vector<std::string> match{};
  std::vector<std::string> drop{};  // patterns to exclude from these
  RepackOptions repack{};
};

// Copies a committed checkpoint to another directory, possibly of another storage. Without any
// selection (pattern, codec, chunk size, number or size of blobs) the result is the same
// checkpoint: attempt, blobs, index and marker, byte for byte (Promote).
//
// Otherwise it is a new attempt of the same content. It takes the source's position in a series:
// step, parent, sequence, mesh, placements and provenance, to which `repack.from` (the attempt id
// of the source) and `repack.how` are added. It has a new creation time, and KEEP files are not
// copied. Tensors that fit into memory become one shard; others keep their shards, split to fit
// into memory. Two checkpoints at one position are a fork (R-SER-15): copy into another series, or
// delete the source.
//
// Only releases 1.0.x also read sources of format version 0 (the draft), here and when
// ThinCheckpoint copies. The copy is then always a new attempt.
//
// Errors: those of Checkpoint::Open and Read for the source, NotFound (a pattern without a match),
// AlreadyExists (R-CMT-01: the destination has another checkpoint's marker), InvalidArgument
// (options; nothing left to write), Unsupported (no exclusive publication at the destination),
// NoSpace, Io, Cancelled. If publication fails, OutcomeIsUnknown may be true; repeat the call to
// find out.
SEALPOINT_EXPORT Result<RepackReport> CopyCheckpoint(const std::string& from, const std::string& to,
                                                     const CopyOptions& options = {});

struct MergeOptions {
  enum class Mode : std::uint8_t {
    // All sources have the same tensors, in any layout. Tensors of f16, bf16, f32, f64, f8 (except
    // f8_e8m0fnu) and complex dtypes are averaged; all others must be equal.
    kAverage,
    // The union of the sources' tensors. A tensor that several sources have must be equal in all of
    // them.
    kUnion,
  };
  enum class Accumulate : std::uint8_t { kF32, kF64 };
  enum class Objects : std::uint8_t {
    kEqual,  // equal in all sources (kUnion: in all that have the object)
    kFirst,  // kAverage: objects of the first source; kUnion: the first source that has the object
  };
  Mode mode = Mode::kAverage;
  // For kAverage: one finite weight per source, used as given regardless of their sum. Empty: 1/n
  // each.
  std::vector<double> weights{};
  // Dtype of the sum w[0] * x[0] + w[1] * x[1] + …, computed from left to right. Each product and
  // each sum is rounded to this dtype, and the result to the tensor's dtype, both by
  // Rounding::kNearestEven. From f64 to a dtype below f32 the result is rounded via f32, as PyTorch
  // does. f64 and c128 are always accumulated in f64.
  Accumulate accumulate = Accumulate::kF32;
  Objects objects = Objects::kEqual;
  // Metadata of the new checkpoint. The step is that of the first source unless it is set. The
  // provenance also gets `repack.from`, the attempt ids of the sources separated by commas, and
  // `repack.how`.
  CommitOptions commit{};
  RepackOptions repack{};
};

// Merges one or more checkpoints into one. Layout, chunk size and codec of a tensor are those of
// the first source that has it. Memory does not depend on the size. Errors: those of CopyCheckpoint
// for each source; Mismatch (a tensor that is missing in one source, has another dtype or shape, or
// differs and is not averaged; an object), InvalidArgument (weights).
SEALPOINT_EXPORT Result<RepackReport> MergeCheckpoints(const std::vector<std::string>& sources,
                                                       const std::string& to,
                                                       const MergeOptions& options = {});

struct RepairOptions {
  std::shared_ptr<Storage> from_storage{};  // for all sources; DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  // If no location has the pinned index, rebuild it from the blob manifests, provided that blob
  // count and total size match the marker. The result is a new attempt at the old one's position,
  // without mesh and provenance.
  bool rebuild_index = false;
  int threads = kThreadsAuto;  // copy threads; kThreadsAuto: 2
  // Payload that all threads may hold in total; at least 4 KiB per thread.
  std::uint64_t memory_budget_bytes = 16 * kMiB;
  Limits limits{};
  PhaseCallback on_progress{};  // kCopy: bytes written
};

struct RepairedBlob {
  BlobId id{};
  std::uint64_t size_bytes = 0;
  // location of the intact copy; the new directory if it was there; empty if lost
  std::string from{};
  std::vector<Status> problems{};  // of the locations tried before
};

struct [[nodiscard]] RepairReport {
  // Success, or the reason why no checkpoint was made. Incomplete if a blob is intact nowhere.
  Status status{};
  AttemptId attempt{};  // of the repaired checkpoint; a new one if the index was rebuilt
  std::uint64_t step = kNoStep;
  std::string marker_from{};          // location that it was read from
  std::string index_from{};           // likewise; empty: rebuilt from manifests
  std::vector<RepairedBlob> blobs{};  // empty if was_committed
  // Names of tensors and objects with elements or bytes in a lost blob, sorted.
  std::vector<std::string> lost_tensors{};
  std::vector<std::string> lost_objects{};
  bool was_committed = false;  // an earlier call committed it
};

// Assembles an intact checkpoint from a damaged one and its copies. Each blob, the marker and the
// index come from the first location with an intact copy: `path`, then `replicas` in order. A
// replica is any directory with some of the files under their original names; it need not be a
// checkpoint. These locations are never changed: `to` is a new directory of any storage. The result
// is the same attempt, byte for byte, and every byte is verified against the marker (as by
// Promote).
//
// If a blob is lost, all others are copied and nothing is published. Call again with another
// replica to continue; the contents of `to` are then verified again.
//
// Errors, in the report: InvalidArgument (`to` is one of the locations; no location has a marker,
// or the markers are of different attempts and `path` has none; options), Incomplete (the index or
// a blob is intact nowhere), Corrupt (a file in `to` is damaged), AlreadyExists (R-CMT-01: `to` has
// another checkpoint's marker), Unsupported, NoSpace, Io, Cancelled.
SEALPOINT_EXPORT RepairReport RepairCheckpoint(const std::string& path,
                                               const std::vector<std::string>& replicas,
                                               const std::string& to,
                                               const RepairOptions& options = {});

struct ThinOptions {
  // Patterns of tensors and objects to remove, as in CopyOptions::drop. At least one.
  std::vector<std::string> drop{};
  // Then delete the source, as Series::Delete does.
  bool remove_source = false;
  RepackOptions repack{};
};

struct ThinReport {
  std::string path{};  // of the new checkpoint
  RepackReport made{};
  bool is_source_removed = false;
};

// Makes a checkpoint without some tensors and objects, such as optimizer state. It can delete the
// source once the new checkpoint is durable, so that one intact checkpoint exists at all times. If
// `to` is empty, the new checkpoint is stored next to the source under its name plus "-thin";
// unless the source is removed, the series then has a fork (R-SER-15). Repeat the call to continue
// after an interruption.
//
// Errors: those of CopyCheckpoint. With remove_source also InvalidArgument, before anything is
// written, if the source is the newest checkpoint, has a KEEP file, or no later checkpoint of the
// series is intact; and those of Series::Delete, after which both checkpoints exist.
SEALPOINT_EXPORT Result<ThinReport> ThinCheckpoint(const std::string& path, const std::string& to,
                                                   const ThinOptions& options);

}  // namespace sealpoint

#endif  // SEALPOINT_REPACK_H_
