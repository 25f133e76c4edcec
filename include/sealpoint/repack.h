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
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

// New checkpoints made of committed ones: copied, merged, repaired, thinned. Sources are never
// changed. Single process; different calls are independent.
//
// What is made appears at once: every chunk is verified while it is read, all blobs are durable
// before the marker is published, and until then the destination holds nothing that counts as a
// checkpoint. Whoever calls again after a crash loses nothing: blobs that are copied unchanged are
// not copied again, all else begins anew, and what the dead call left is removed at the end.

namespace sealpoint {

// Called with the bytes written so far and those that are to be written, on any thread, one call at
// a time. One that returns false or throws ends the call with Cancelled.
using RepackProgress = std::function<bool(std::uint64_t bytes_done, std::uint64_t bytes_total)>;

// How a new checkpoint is read together and written.
struct RepackOptions {
  std::shared_ptr<Storage> from_storage{};  // of all sources; DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  std::optional<Codec> codec{};             // nothing: of each tensor the one that it has
  int codec_level = 1;                      // zstd's
  // As TensorSpec::chunk_size_bytes; 0: of each tensor the one that it has.
  std::uint64_t chunk_size_bytes = 0;
  // Blobs of about the same size, for which larger tensors are cut; 0: one per thread. There are
  // fewer if they would have less than 64 KiB.
  std::uint32_t blob_count = 0;
  // As BlobWriterOptions::size_max_bytes; 0: its default. A smaller one makes more blobs.
  std::uint64_t blob_size_max_bytes = 0;
  int threads = 2;  // that read, verify, encode and write; at most kThreadsMax
  // What all threads together hold of payload, beside a chunk for each while it is decoded or
  // encoded, and a part of an upload for each (Storage::part_size_bytes); at least 1 MiB for each
  // thread.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  Limits limits{};
  RepackProgress on_progress{};
  // Look at the sources, and write and delete nothing. The report then has step, tensors, objects
  // and raw_bytes of what would be made, and of one that would be identical all.
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
  bool is_identical = false;      // the same checkpoint, byte for byte, and no new one
  bool was_committed = false;     // an earlier call had made it
};

struct CopyOptions {
  // Names of tensors and objects, patterns as of Checkpoint::MatchTensors. Empty: all.
  std::vector<std::string> match{};
  std::vector<std::string> drop{};  // of these, what stays behind
  RepackOptions repack{};
};

// Copies a committed checkpoint to another directory, which may be of another storage. With nothing
// chosen (no pattern, codec, chunk size, count or size of blobs) it is the same checkpoint:
// attempt, blobs, index and marker, byte for byte (Promote). Otherwise it is a new attempt of the
// same content that has the place of its source in a series: step, parent and sequence, mesh,
// placements, and the provenance, to which it adds `repack.from`, the id of the source's attempt,
// and `repack.how`. Its time is new, and KEEP files are not copied. Tensors that fit into memory
// become one shard, others keep their shards, cut where memory ends. Two checkpoints of one place
// are a fork (R-SER-15): copy into another series, or delete the source. A source of format version
// 0, the draft, is read as well, here and where ThinCheckpoint copies, in the releases 1.0.x alone;
// its copy is a new attempt in any case.
//
// Errors: those of Checkpoint::Open and Read for the source, NotFound (a pattern that matches
// nothing), AlreadyExists (R-CMT-01: the destination has the marker of something else),
// InvalidArgument (options; nothing is left to write), Unsupported (no exclusive publication
// there), NoSpace, Io, Cancelled. After an error of the publication OutcomeIsUnknown may be true;
// calling again finds out.
SEALPOINT_EXPORT Result<RepackReport> CopyCheckpoint(const std::string& from, const std::string& to,
                                                     const CopyOptions& options = {});

struct MergeOptions {
  enum class Mode : std::uint8_t {
    // All have the same tensors, of any layouts. Those of f16, bf16, f32, f64, f8 (but for
    // f8_e8m0fnu) and complex dtypes are averaged, all others have to be equal.
    kAverage,
    // Each tensor of any of them; those that several have must be equal in all of these.
    kUnion,
  };
  enum class Accumulate : std::uint8_t { kF32, kF64 };
  enum class Objects : std::uint8_t {
    kEqual,  // an object has to be the same in all (kUnion: all that have it)
    kFirst,  // kAverage: those of the first; kUnion: of several with a name, the first one's
  };
  Mode mode = Mode::kAverage;
  // For kAverage: one per source, finite, used as they are, whatever their sum. Empty: 1/n each.
  std::vector<double> weights{};
  // The sum w[0] * x[0] + w[1] * x[1] + …, from left to right; each product and each sum is rounded
  // to this dtype, and the result to the tensor's (from f64 to those below f32 by way of f32, as
  // PyTorch does), by Rounding::kNearestEven. f64 and c128 are always accumulated in f64.
  Accumulate accumulate = Accumulate::kF32;
  Objects objects = Objects::kEqual;
  // What the new checkpoint says of itself. The step of the first source unless one is given; to
  // the provenance `repack.from`, the sources' attempts separated by commas, and `repack.how` are
  // added.
  CommitOptions commit{};
  RepackOptions repack{};
};

// Makes one checkpoint of several, at least one. The layouts, chunks and codecs are those of the
// first that has a tensor. Memory does not depend on the size. Errors: as CopyCheckpoint's for each
// source; Mismatch (a tensor that one lacks, of another dtype or shape, or that differs and is not
// averaged; an object), InvalidArgument (weights).
SEALPOINT_EXPORT Result<RepackReport> MergeCheckpoints(const std::vector<std::string>& sources,
                                                       const std::string& to,
                                                       const MergeOptions& options = {});

struct RepairOptions {
  std::shared_ptr<Storage> from_storage{};  // of all places; DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  // Where no place has the index that the marker pins: build a new one from the manifests of the
  // blobs, if those of the attempt have the number and the length that the marker pins. What is
  // made then is a new attempt in the place of the old one, without its mesh and its provenance.
  bool rebuild_index = false;
  int threads = 2;  // that copy
  // What all threads together hold of payload; at least 4 KiB for each.
  std::uint64_t memory_budget_bytes = 16 * kMiB;
  Limits limits{};
  RepackProgress on_progress{};
};

struct RepairedBlob {
  BlobId id{};
  std::uint64_t size_bytes = 0;
  std::string from{};  // the place that had it whole; the new directory if it was there; or empty
  std::vector<Status> problems{};  // of the places that were looked at before
};

struct [[nodiscard]] RepairReport {
  // Success, or why there is no repaired checkpoint. Of blobs that are nowhere whole: Incomplete.
  Status status{};
  AttemptId attempt{};  // of the repaired checkpoint; another one if the index is a new one
  std::uint64_t step = kNoStep;
  std::string marker_from{};          // the place it was read from
  std::string index_from{};           // likewise; empty: built from manifests
  std::vector<RepairedBlob> blobs{};  // empty if was_committed
  // What has elements, or bytes, in a blob that is nowhere whole. By name; empty if there is none.
  std::vector<std::string> lost_tensors{};
  std::vector<std::string> lost_objects{};
  bool was_committed = false;  // an earlier call had made it
};

// Makes a whole checkpoint of a damaged one and of its copies: of each blob the first that passes
// in `path`, then in `replicas`; marker and index likewise. A replica is any directory with some of
// the files, under their names; it need not be a checkpoint. Nothing in these places is changed:
// `to` is a new directory, of any storage. It gets the same attempt, byte for byte, and every byte
// is verified by what the marker pins (as by Promote). If a blob is lost, all others are copied,
// and nothing is published: whoever calls again with another replica goes on, and what is in `to`
// by then is verified again. Errors, in the report: InvalidArgument (`to` is one of the places; no
// place has a marker, or those that have are of different attempts and `path` is not among them;
// options), Incomplete (the index, or a blob, is nowhere), Corrupt (what is in `to` is damaged),
// AlreadyExists (R-CMT-01: `to` has the marker of something else), Unsupported, NoSpace, Io,
// Cancelled.
SEALPOINT_EXPORT RepairReport RepairCheckpoint(const std::string& path,
                                               const std::vector<std::string>& replicas,
                                               const std::string& to,
                                               const RepairOptions& options = {});

struct ThinOptions {
  // Names of tensors and objects, as CopyOptions::drop. At least one.
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

// Makes a checkpoint without some of its tensors and objects, such as those of an optimizer, and
// may delete the old one afterwards, when the new one is durable: at each moment one of both is
// whole. `to` empty: beside the old one, its name with "-thin"; without remove_source the series
// then has a fork (R-SER-15). A call that is repeated goes on. Errors: as CopyCheckpoint; with
// remove_source also InvalidArgument, before anything is written, if the source is the newest, KEEP
// is there, or no later checkpoint of the series is whole; and those of Series::Delete, after which
// both are there.
SEALPOINT_EXPORT Result<ThinReport> ThinCheckpoint(const std::string& path, const std::string& to,
                                                   const ThinOptions& options);

}  // namespace sealpoint

#endif  // SEALPOINT_REPACK_H_
