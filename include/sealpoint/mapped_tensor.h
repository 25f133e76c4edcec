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
#include "sealpoint/region.h"
#include "sealpoint/status.h"
#include "sealpoint/threads.h"

namespace sealpoint {

struct MapOptions {
  int threads = kThreadsAuto;  // read and verify threads
  // Copy the verified bytes into immutable memory: an anonymous file (memfd) sealed against writing
  // and resizing. Other processes of this host map it with MapSealed without verifying again. If
  // false, the pages of the blob's file are mapped.
  bool host_copy = false;
};

// A shard of a tensor in read-only memory.
struct MappedShard {
  Region region{};
  ByteSpan bytes{};  // the region's elements, dense, in row-major order
};

// The stored bytes of one tensor, mapped instead of copied. All chunks were read and verified when
// it was created; later accesses only read memory. It owns its mapping, so the checkpoint may be
// closed. Immutable. Thread safety: all functions.
//
// A mapped file can still change: if another program overwrites it in place, the new bytes are
// visible; if it truncates the file, an access ends the process with SIGBUS. This library does
// neither: blobs are never changed, and a blob that is unlinked (by pruning, for example) remains
// intact while it is mapped. If other programs may change files, use MapOptions::host_copy.
class SEALPOINT_EXPORT MappedTensor {
 public:
  virtual ~MappedTensor() = default;
  MappedTensor(const MappedTensor&) = delete;
  MappedTensor& operator=(const MappedTensor&) = delete;

  virtual const TensorInfo& info() const = 0;
  // In stored order, as in Checkpoint::Shards.
  virtual std::span<const MappedShard> shards() const = 0;
  // All bytes in row-major order, if a single shard covers the tensor. Zero bytes for an empty
  // tensor.
  std::optional<ByteSpan> whole() const;
  // The descriptor of a host copy's sealed memory, open as long as this object; otherwise empty.
  // Pass it to MapSealed in another process, via SCM_RIGHTS or as /proc/PID/fd/N.
  virtual std::optional<int> descriptor() const = 0;

 protected:
  MappedTensor() = default;
};

// Maps a tensor. Reads and verifies all of it; for a host copy, the copied bytes are verified.
// `checkpoint` must come from Checkpoint::Open. Single process.
//
// Errors: NotFound (no such tensor); Unsupported (without host_copy: chunks with a codec, or a
// storage without file descriptors, such as an object store; read the tensor instead); Corrupt,
// Incomplete (also if the file became shorter while it was mapped; an error instead of a signal
// since Linux 5.14), Io; InvalidArgument (options).
SEALPOINT_EXPORT Result<std::shared_ptr<const MappedTensor>> MapTensor(
    const Checkpoint& checkpoint, std::string_view name, const MapOptions& options = {});

// Maps the host copy that MapTensor made of this tensor and checkpoint in another process. That
// process is trusted to have verified it. The descriptor may be closed afterwards. Errors:
// NotFound, InvalidArgument (memory that is not sealed, or not of this tensor's size), Io.
SEALPOINT_EXPORT Result<std::shared_ptr<const MappedTensor>> MapSealed(const Checkpoint& checkpoint,
                                                                       std::string_view name,
                                                                       int descriptor);

}  // namespace sealpoint

#endif  // SEALPOINT_MAPPED_TENSOR_H_
