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

// Storage statistics of the chunks of a tensor.
struct StoredChunks {
  struct CodecCount {
    Codec codec{};
    std::uint64_t chunk_count = 0;
    friend bool operator==(const CodecCount&, const CodecCount&) = default;
  };
  std::uint64_t chunk_count = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::vector<CodecCount> codecs{};  // codecs in use, ascending
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
  // Stat every blob, so that an incomplete copy is detected on opening.
  bool check_files = true;
  // Bypass the page cache for payload reads, if the file system supports it.
  bool direct_io = false;
  // Staging memory for reads; at least 64 KiB, and at least one chunk per thread is used.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
};

struct ReadOptions {
  int threads = kThreadsAuto;  // read and verify threads
  // Write only verified data to destinations. If false, chunks that fit entirely into a dense
  // destination are read in place, and after an error the content of destinations is unspecified.
  // Always on for device memory, except with gpudirect_storage: data is verified on the host before
  // it is copied to the device.
  bool isolate = false;
  // Also verify data after its copy to device memory, on the device. This costs one pass over the
  // device memory. It applies to every chunk that is requested whole, is not converted, and goes to
  // one range of memory: a dense destination, or one with dense rows.
  // LoadReport::bytes_verified_on_device counts these bytes. Errors: Device (the data differs from
  // the data verified on the host; with tensor, file and offset), Unsupported (a device of the plan
  // computes no digests; before any read).
  bool verify_on_device = false;
  // Let devices read directly through NVIDIA's GPUDirect Storage (its library is loaded at run
  // time) and verify the data in device memory. This applies to ranges of whole chunks without a
  // codec that go to dense memory of devices that compute digests. Everything else, and all data
  // that this machine, its library or its file system cannot read this way, is read as usual.
  // LoadReport::bytes_by_gpudirect_storage counts the direct bytes. They reach the destination
  // before they are verified, so `isolate` disables this option. Errors: as without it; Device if
  // the received data differs from the file. Not yet tested on a real device.
  bool gpudirect_storage = false;
  PhaseCallback on_progress{};
};

// A committed checkpoint, open for reading. Marker and index are verified when it is opened,
// payload when it is read. Single process; needs no communicator. Immutable. Thread safety: all
// functions.
class SEALPOINT_EXPORT Checkpoint {
 public:
  // Errors: NotFound, NotACheckpoint, Uncommitted, Incomplete, Corrupt, Unsupported, LimitExceeded,
  // Io; InvalidArgument (options).
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path,
                                                  OpenOptions options = {});
  // Like Open, but takes the bytes of marker and index from the caller, for example as sent by
  // another process. They are verified in the same way.
  static Result<std::unique_ptr<Checkpoint>> OpenFrom(const std::string& path, Bytes marker,
                                                      Bytes index, OpenOptions options = {});
  virtual ~Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // The verified files, for sending to other processes.
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
  // Name of tensor(i) without a copy; valid while the checkpoint exists.
  virtual std::string_view tensor_name(std::size_t i) const = 0;
  std::vector<TensorInfo> tensors() const;
  virtual std::optional<TensorInfo> FindTensor(std::string_view name) const = 0;  // O(log n)
  // Tensors with names that begin with `prefix`. O(log n + matches).
  virtual std::vector<TensorInfo> TensorsWithPrefix(std::string_view prefix) const = 0;
  // Tensors with names that match at least one pattern completely, each once. `*` matches any
  // characters (including none, dots and slashes), `?` one character, and a backslash quotes the
  // next character. The text before the first wildcard is looked up, so the cost is proportional to
  // the number of names with that prefix. Errors: NotFound (a pattern without a match),
  // InvalidArgument (a backslash at the end).
  virtual Result<std::vector<TensorInfo>> MatchTensors(
      const std::vector<std::string>& patterns) const = 0;
  // Like MatchTensors, but returns the tensors' positions in ascending order, for callers that
  // process one tensor after the other.
  virtual Result<std::vector<std::size_t>> MatchTensorNumbers(
      const std::vector<std::string>& patterns) const = 0;
  virtual std::size_t object_count() const = 0;
  virtual ObjectInfo object(std::size_t i) const = 0;
  std::vector<ObjectInfo> objects() const;
  virtual std::optional<ObjectInfo> FindObject(std::string_view name) const = 0;
  // Like MatchTensors, for objects. Scans all names.
  virtual Result<std::vector<ObjectInfo>> MatchObjects(
      const std::vector<std::string>& patterns) const = 0;
  // Returns codecs and stored size of a tensor. Reads the records of its chunks (64 bytes each,
  // verified against the index) and no payload. Errors: NotFound, and those of Open for the tables.
  virtual Result<StoredChunks> TensorChunks(std::string_view tensor) const = 0;
  // In stored order. Errors: NotFound.
  virtual Result<std::vector<ShardInfo>> Shards(std::string_view tensor) const = 0;
  // Like Shards, but visits one shard after the other. Use it for tensors with many shards: a list
  // may take far more memory than the index.
  virtual Status ForEachShard(std::string_view tensor,
                              const std::function<void(const ShardInfo&)>& visit) const = 0;

  // Computes the file ranges that a request needs. Reads the chunk records, which are verified
  // against the index. Errors: Mismatch (contract), InvalidArgument (a region outside the shape; a
  // destination that is null, or of the wrong size or dtype), and those of Open for the tables.
  virtual Result<ReadPlan> Plan(const ReadRequest& request,
                                const LoadContract& contract = {}) const = 0;
  // Executes a plan of this checkpoint. Success means that all requested data is verified and in
  // place. Nothing remains queued on the streams of device destinations, even after an error.
  // Damage in chunks outside the plan is not detected. Errors: Corrupt, Incomplete, Io, Device, …
  virtual Result<LoadReport> Read(const ReadPlan& plan, const ReadOptions& options = {}) const = 0;
  // Plan and Read in one call.
  Result<LoadReport> Load(const ReadRequest& request, const LoadContract& contract = {},
                          const ReadOptions& options = {}) const;
  // Returns the verified bytes of an object. Errors: NotFound, and those of Read.
  virtual Result<Bytes> ReadObject(std::string_view name) const = 0;

 protected:
  Checkpoint() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_CHECKPOINT_H_
