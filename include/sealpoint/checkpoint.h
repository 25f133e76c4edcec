// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_CHECKPOINT_H_
#define SEALPOINT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/attributes.h"
#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

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
  // Empty if the writer stored no fingerprint; see BlobWriterOptions::fingerprints.
  std::optional<Fingerprint> fingerprint{};
  Attributes attributes{};
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct ShardInfo {
  Region region{};
  BlobId blob{};
  friend bool operator==(const ShardInfo&, const ShardInfo&) = default;
};

// Summary of the stored chunks of a tensor.
struct StoredChunks {
  struct CodecCount {
    Codec codec{};
    std::uint64_t chunk_count = 0;
    friend bool operator==(const CodecCount&, const CodecCount&) = default;
  };
  std::uint64_t chunk_count = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::vector<CodecCount> codecs{};  // the codecs in use, in ascending order
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
  // When the checkpoint is opened, check that every blob exists and has the right length. This
  // detects incomplete copies.
  bool check_files = true;
  // Directories of bases, by attempt, for a checkpoint that was saved as changes to another one
  // (SaveOptions::base). A base that is not named here is expected in the same series, under the
  // name SeriesDirectoryName.
  std::map<AttemptId, std::string> base_directories{};
  // True: read payload without the page cache, if the file system supports direct I/O. False: read
  // payload through the page cache. Not set: read those parts of large reads directly that are not
  // in the page cache and that no other process of the job on this host is expected to read
  // (docs/guides/loading.md).
  std::optional<bool> direct_io{};
  // Staging memory for reads in bytes, at least 64 KiB. Each thread may use memory for one chunk
  // even if the threads together then exceed this budget. If a checkpoint of changes has other
  // chunks than its base, each thread also keeps decoded chunks of bases, in a quarter of the
  // budget. Errors of reads: LimitExceeded (the threads decode the same chunks again and again).
  std::uint64_t memory_budget_bytes = 256 * kMiB;
};

struct ReadOptions {
  int threads = kThreadsAuto;  // number of threads that read and verify
  // Write only verified data to destinations. If false, chunks that belong entirely to a dense
  // destination are read directly into its memory. In this case, the content of destinations is
  // unspecified after an error. For device memory, this option is always on, because data is
  // verified on the host before it is copied to the device. The only exception is data that is read
  // through gpudirect_storage.
  bool isolate = false;
  // The destinations hold the data of the base (Checkpoint::base), bound to the same regions:
  // change them in place. Applies to chunks that are stored as changes and belong entirely to one
  // dense destination in host memory, without conversion; all other chunks are read as usual. Every
  // chunk is verified after the change. After an error, the content of all destinations is
  // unspecified. Errors: InvalidArgument (the checkpoint has no base; `isolate` is set).
  bool holds_base = false;
  // Verify data again on the device, after it was copied to device memory. The verification costs
  // one pass over the device memory. It covers every chunk that is requested whole, is not
  // converted, and is copied to one contiguous range of memory. The destination must be dense or
  // have dense rows. LoadReport::bytes_verified_on_device counts the bytes of these chunks. Errors:
  // Device (the data on the device differs from the data verified on the host; the error has
  // tensor, file and offset), Unsupported (a device of the plan cannot compute digests; this is
  // detected before anything is read).
  bool verify_on_device = false;
  // Let devices read directly from storage through NVIDIA's GPUDirect Storage, and verify the data
  // in device memory. The GPUDirect library is loaded at run time. The option applies to ranges of
  // whole chunks that are stored without a codec and are read into dense memory of a device. The
  // device must be able to compute digests. All other data is read without GPUDirect. GPUDirect is
  // also not used for data that this machine, its GPUDirect library or its file system cannot read
  // directly. LoadReport::bytes_by_gpudirect_storage counts the bytes read directly. These bytes
  // reach the destination before they are verified, so `isolate` disables this option. Further
  // errors: Device (the data in device memory differs from the file). This option has not been
  // tested on a real device.
  bool gpudirect_storage = false;
  PhaseCallback on_progress{};
};

// A committed checkpoint, open for reading. Open verifies the marker and the index; reads verify
// the payload. Single process; needs no communicator. Immutable. Thread safety: all functions may
// be called from any thread.
class SEALPOINT_EXPORT Checkpoint {
 public:
  // Errors: NotFound, NotACheckpoint, Uncommitted, Incomplete, Corrupt, Unsupported, LimitExceeded,
  // Io; InvalidArgument (options).
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path,
                                                  OpenOptions options = {});
  // Like Open, but the caller passes the bytes of the marker and the index, for example bytes that
  // another process sent. OpenFrom verifies these bytes as Open does.
  static Result<std::unique_ptr<Checkpoint>> OpenFrom(const std::string& path, Bytes marker,
                                                      Bytes index, OpenOptions options = {});
  virtual ~Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // The bytes of the verified marker and index. Another process can pass these bytes to OpenFrom.
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
  virtual Attributes attributes() const = 0;
  virtual std::vector<BlobInfo> blobs() const = 0;
  // The base, if chunks are stored as changes to those of another checkpoint (SaveOptions::base).
  // Open has verified it, and every base below it, as far as it verifies this checkpoint.
  virtual std::optional<BaseRef> base() const = 0;
  // The reference to this checkpoint that is stored by checkpoints for which it is the base.
  virtual BaseRef as_base() const = 0;

  // The tensors, sorted by name. tensor(i) builds the description of one tensor; tensors() builds
  // all descriptions.
  virtual std::size_t tensor_count() const = 0;
  virtual TensorInfo tensor(std::size_t i) const = 0;
  // Returns the name of tensor(i) without copying it. Valid while the checkpoint exists.
  virtual std::string_view tensor_name(std::size_t i) const = 0;
  std::vector<TensorInfo> tensors() const;
  virtual std::optional<TensorInfo> FindTensor(std::string_view name) const = 0;  // O(log n)
  // Returns the tensors with names that begin with `prefix`. O(log n + matches).
  virtual std::vector<TensorInfo> TensorsWithPrefix(std::string_view prefix) const = 0;
  // Returns the tensors that match at least one pattern, each tensor once. A pattern must match the
  // entire name. In a pattern, `*` matches any sequence of characters, including dots and slashes;
  // `?` matches one character; a backslash quotes the next character. A pattern is compared only
  // with names that begin with the text before its first wildcard. The cost is proportional to the
  // number of these names. Errors: NotFound (a pattern matches nothing), InvalidArgument (a pattern
  // ends with a backslash).
  virtual Result<std::vector<TensorInfo>> MatchTensors(
      const std::vector<std::string>& patterns) const = 0;
  // Like MatchTensors, but returns the positions of the tensors in ascending order. Use this
  // function to process the tensors one by one.
  virtual Result<std::vector<std::size_t>> MatchTensorNumbers(
      const std::vector<std::string>& patterns) const = 0;
  virtual std::size_t object_count() const = 0;
  virtual ObjectInfo object(std::size_t i) const = 0;
  std::vector<ObjectInfo> objects() const;
  virtual std::optional<ObjectInfo> FindObject(std::string_view name) const = 0;
  // Like MatchTensors, but for objects. Compares every object name with the patterns.
  virtual Result<std::vector<ObjectInfo>> MatchObjects(
      const std::vector<std::string>& patterns) const = 0;
  // Returns the codecs and the stored size of a tensor. Reads and verifies the chunk records of the
  // tensor (64 bytes per chunk) but reads no payload. Errors: NotFound; if a table is damaged or
  // cannot be read, any error that Open reports for a file.
  virtual Result<StoredChunks> TensorChunks(std::string_view tensor) const = 0;
  // Returns the shards of a tensor in the order in which they are stored. Errors: NotFound.
  virtual Result<std::vector<ShardInfo>> Shards(std::string_view tensor) const = 0;
  // Like Shards, but passes the shards to `visit` one at a time. Use this function for tensors with
  // many shards, because a list of all shards may need far more memory than the index.
  virtual Status ForEachShard(std::string_view tensor,
                              const std::function<void(const ShardInfo&)>& visit) const = 0;

  // Computes the file ranges that a request needs. Reads the records of the needed chunks, and
  // verifies these records against the index. Errors: Mismatch (contract), InvalidArgument (a
  // region outside the shape; a destination that is null or has the wrong size or dtype); if a
  // table is damaged or cannot be read, any error that Open reports for a file.
  virtual Result<ReadPlan> Plan(const ReadRequest& request,
                                const LoadContract& contract = {}) const = 0;
  // Executes a plan that was made for this checkpoint. After success, all requested data is
  // verified and in its destination. When the call returns, even with an error, no work of this
  // call is pending on the streams of device destinations. Chunks outside the plan are not read, so
  // damage in them is not detected. Errors: Corrupt, Incomplete, Io, Device, …
  virtual Result<LoadReport> Read(const ReadPlan& plan, const ReadOptions& options = {}) const = 0;
  // Calls Plan and then Read.
  Result<LoadReport> Load(const ReadRequest& request, const LoadContract& contract = {},
                          const ReadOptions& options = {}) const;
  // Reads and verifies an object and returns its bytes. Errors: NotFound, and the errors of Read.
  virtual Result<Bytes> ReadObject(std::string_view name) const = 0;

 protected:
  Checkpoint() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_CHECKPOINT_H_
