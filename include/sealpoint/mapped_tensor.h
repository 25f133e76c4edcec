// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MAPPED_TENSOR_H_
#define SEALPOINT_MAPPED_TENSOR_H_

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/export.h"
#include "sealpoint/limits.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

struct MapOptions {
  int threads = kThreadsAuto;  // read and verify threads
  // If true, copy the bytes into immutable memory and verify the copy. The memory is an anonymous
  // file (memfd) that is sealed against writing and resizing. Other processes on this host can map
  // this file with MapSealed and need not verify the bytes again. If false, map the pages of the
  // blob's file.
  bool host_copy = false;
};

// A shard of a tensor in read-only memory.
struct MappedShard {
  Region region{};
  ByteSpan bytes{};  // the region's elements, dense, in row-major order
};

// The stored bytes of one tensor, mapped into memory instead of copied to a destination. MapTensor
// reads and verifies all chunks; later accesses only read memory. The object owns its mapping, so
// the checkpoint may be closed. Immutable. All functions are thread-safe.
//
// A mapped file can still change. If another program overwrites the file in place, the mapping
// shows the new bytes. If another program truncates the file, an access to the mapping ends the
// process with SIGBUS. This library never overwrites or truncates a blob, and a blob that is
// unlinked (for example by pruning) remains intact while it is mapped. If other programs may change
// the files, use MapOptions::host_copy.
class SEALPOINT_EXPORT MappedTensor {
 public:
  virtual ~MappedTensor() = default;
  MappedTensor(const MappedTensor&) = delete;
  MappedTensor& operator=(const MappedTensor&) = delete;

  virtual const TensorInfo& info() const = 0;
  // Returns the shards in stored order, like Checkpoint::Shards.
  virtual std::span<const MappedShard> shards() const = 0;
  // Returns all bytes in row-major order if a single shard covers the tensor, and an empty span if
  // the tensor is empty. Returns nullopt if the tensor has several shards.
  std::optional<ByteSpan> whole() const;
  // Returns the file descriptor of a host copy's sealed memory; nullopt if this object is not a
  // host copy. The descriptor stays open as long as this object exists. To map the memory in
  // another process, send the descriptor to that process via SCM_RIGHTS, or open /proc/PID/fd/N in
  // that process. Then call MapSealed in that process.
  virtual std::optional<int> descriptor() const = 0;

 protected:
  MappedTensor() = default;
};

// Maps a tensor. Reads and verifies all bytes of the tensor; for a host copy, verifies the copied
// bytes. `checkpoint` must come from Checkpoint::Open. Single process.
//
// Errors: NotFound (no such tensor); Unsupported (only if host_copy is false: the tensor has chunks
// with a codec, or the storage has no file descriptors, as in an object store; read the tensor
// instead); Corrupt; Incomplete (also if the file becomes shorter during the call; before Linux
// 5.14, this raises SIGBUS instead); Io; InvalidArgument (options).
SEALPOINT_EXPORT Result<std::shared_ptr<const MappedTensor>> MapTensor(
    const Checkpoint& checkpoint, std::string_view name, const MapOptions& options = {});

// Maps a host copy of this tensor. MapTensor must have made the copy from the same checkpoint, in
// another process. The other process has verified the bytes; MapSealed does not verify them again.
// `descriptor` may be closed after the call. Errors: NotFound (no such tensor), InvalidArgument
// (the memory is not sealed, or does not have this tensor's size), Io.
SEALPOINT_EXPORT Result<std::shared_ptr<const MappedTensor>> MapSealed(const Checkpoint& checkpoint,
                                                                       std::string_view name,
                                                                       int descriptor);

}  // namespace sealpoint

#endif  // SEALPOINT_MAPPED_TENSOR_H_
