// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_CHECKPOINT_H_
#define SEALPOINT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/codec.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

namespace sealpoint {

struct TensorInfo {
  std::string name{};
  DType dtype = DType::kNone;
  std::uint32_t element_size = 0;  // bytes
  Shape shape{};
  std::uint64_t chunk_size_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t shard_count = 0;
  std::vector<std::string> placement{};  // provenance
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct ShardInfo {
  Region region{};
  BlobId blob{};
  friend bool operator==(const ShardInfo&, const ShardInfo&) = default;
};

// How the chunks of a tensor are stored.
struct StoredChunks {
  struct CodecCount {
    Codec codec{};
    std::uint64_t chunk_count = 0;
    friend bool operator==(const CodecCount&, const CodecCount&) = default;
  };
  std::uint64_t chunk_count = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::vector<CodecCount> codecs{};  // those that chunks have, ascending
  friend bool operator==(const StoredChunks&, const StoredChunks&) = default;
};

struct ObjectInfo {
  std::string name{};
  std::string media_type{};
  std::uint64_t size_bytes = 0;
  friend bool operator==(const ObjectInfo&, const ObjectInfo&) = default;
};

struct BlobInfo {
  BlobId id{};
  std::uint64_t file_size_bytes = 0;
  std::uint64_t chunk_count = 0;
  friend bool operator==(const BlobInfo&, const BlobInfo&) = default;
};

struct OpenOptions {
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  Limits limits{};
  // Stat every blob, so that an incomplete copy is found here.
  bool check_files = true;
  // Read payload past the page cache if the file system can.
  bool direct_io = false;
  // Bound on staging memory of reads, at least 64 KiB; one chunk per thread is needed at least.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
};

struct ReadOptions {
  int threads = kThreadsAuto;  // that read and verify; at most kThreadsMax
  // Write to destinations only what was verified already. Off: chunks that a dense destination
  // takes whole are read in place, and after an error the content of destinations is unspecified.
  // Always on for device memory, except with gpudirect_storage: nothing is copied there before it
  // was verified on the host.
  bool isolate = false;
  // Also verify what arrived in device memory, on the device, which costs a pass over its memory. A
  // chunk can be verified there if all its bytes go, as they are stored, to one range of memory: in
  // dense destinations (or those of dense rows) all chunks that are requested whole, unless they
  // are converted. LoadReport::bytes_verified_on_device counts these bytes. Errors: Device (what
  // arrived is not what was verified on the host; names tensor, file and offset), Unsupported
  // (before anything is read: a device of the plan computes no digests).
  bool verify_on_device = false;
  // Let devices read by themselves what needs no work of the host (NVIDIA's GPUDirect Storage,
  // whose library is looked for at run time), and verify it where it arrived: ranges of whole
  // chunks without a codec whose bytes all go to dense memory of devices that compute digests. All
  // else is read as without it, and so is what this machine, its library or its file system cannot
  // read this way; LoadReport::bytes_by_gpudirect_storage counts the bytes that were. They are in
  // the destination before they are verified, so `isolate` switches it off. Errors: as without it;
  // Device, if what arrived is not what the file holds. This has not run on a real device yet.
  bool gpudirect_storage = false;
  PhaseCallback on_phase{};
};

// A committed checkpoint, open for reading. Marker and index are verified when it is made; payload
// when it is read. Single process; needs no communicator. Immutable. Thread safety: all functions.
class SEALPOINT_EXPORT Checkpoint {
 public:
  // Errors: NotFound, NotACheckpoint, Uncommitted, Incomplete, Corrupt, Unsupported, LimitExceeded,
  // Io; InvalidArgument (options).
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path,
                                                  OpenOptions options = {});
  // As Open, from marker and index bytes that somebody else read and sent; they are verified alike.
  static Result<std::unique_ptr<Checkpoint>> OpenFrom(const std::string& path, Bytes marker,
                                                      Bytes index, OpenOptions options = {});
  virtual ~Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // The verified files, to be sent to others.
  virtual ByteSpan marker_bytes() const = 0;
  virtual ByteSpan index_bytes() const = 0;

  virtual const std::string& path() const = 0;
  virtual AttemptId attempt() const = 0;
  virtual AttemptId parent() const = 0;  // zero if none
  virtual std::uint64_t sequence() const = 0;
  virtual std::uint64_t step() const = 0;
  virtual std::uint64_t created_unix_ns() const = 0;
  virtual std::uint64_t raw_bytes() const = 0;
  virtual std::vector<std::pair<std::string, std::uint32_t>> mesh() const = 0;
  virtual std::vector<std::pair<std::string, std::string>> provenance() const = 0;
  virtual std::vector<BlobInfo> blobs() const = 0;

  // Sorted by name. tensor(i) builds one description; tensors() all of them.
  virtual std::size_t tensor_count() const = 0;
  virtual TensorInfo tensor(std::size_t i) const = 0;
  // Its name alone, without a copy; valid while the checkpoint lives.
  virtual std::string_view tensor_name(std::size_t i) const = 0;
  std::vector<TensorInfo> tensors() const;
  virtual std::optional<TensorInfo> FindTensor(std::string_view name) const = 0;  // O(log n)
  // Those whose names begin with this. O(log n + matches).
  virtual std::vector<TensorInfo> TensorsWithPrefix(std::string_view prefix) const = 0;
  // Those whose names match at least one of the patterns as a whole, each once. `*` matches any
  // characters (also none; also dots and slashes), `?` one character, and the character after a
  // backslash, like all others, itself. The text before the first `*` or `?` is searched for, so
  // that the cost is that of the names that begin with it. Errors: NotFound (a
  // pattern that matches nothing), InvalidArgument (a backslash at the end).
  virtual Result<std::vector<TensorInfo>> MatchTensors(
      const std::vector<std::string>& patterns) const = 0;
  // Their numbers instead, ascending: for callers that look at one after the other.
  virtual Result<std::vector<std::size_t>> MatchTensorNumbers(
      const std::vector<std::string>& patterns) const = 0;
  virtual std::size_t object_count() const = 0;
  virtual ObjectInfo object(std::size_t i) const = 0;
  std::vector<ObjectInfo> objects() const;
  virtual std::optional<ObjectInfo> FindObject(std::string_view name) const = 0;
  // As MatchTensors, for objects; looks at all names.
  virtual Result<std::vector<ObjectInfo>> MatchObjects(
      const std::vector<std::string>& patterns) const = 0;
  // Codecs and stored size of a tensor. Reads the records of its chunks (64 B each; they are
  // verified against the index) and no payload. Errors: NotFound, and those of Open for the tables.
  virtual Result<StoredChunks> TensorChunks(std::string_view tensor) const = 0;
  // In stored order. Errors: NotFound.
  virtual Result<std::vector<ShardInfo>> Shards(std::string_view tensor) const = 0;
  // The same one after the other, without a list of them, which may take far more memory than the
  // index does.
  virtual Status ForEachShard(std::string_view tensor,
                              const std::function<void(const ShardInfo&)>& visit) const = 0;

  // Which ranges of which files the requests need. Reads the chunk records it needs (they are
  // verified against the index). Errors: Mismatch (contract), InvalidArgument (region outside the
  // shape; a destination that is null, or of another size or dtype), and those of Open for the
  // tables.
  virtual Result<ReadPlan> Plan(const ReadRequest& request,
                                const LoadContract& contract = {}) const = 0;
  // Runs a plan of this checkpoint. Success is returned only after everything that was touched is
  // verified and has arrived; nothing is left on the streams of destinations in device memory,
  // after an error neither. Damage in chunks that the plan does not touch does not matter. Errors:
  // Corrupt, Incomplete, Io, Device, …
  virtual Result<LoadReport> Read(const ReadPlan& plan, const ReadOptions& options = {}) const = 0;
  // Plan and Read in one call.
  Result<LoadReport> Load(const ReadRequest& request, const LoadContract& contract = {},
                          const ReadOptions& options = {}) const;
  // The verified bytes of an object. Errors: NotFound, and those of Read.
  virtual Result<Bytes> ReadObject(std::string_view name) const = 0;

 protected:
  Checkpoint() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_CHECKPOINT_H_
