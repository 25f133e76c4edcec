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
  int threads = kThreadsAuto;  // that read and verify; at most kThreadsMax
  // Copy the verified bytes into memory that no process can change any more: an anonymous file
  // (memfd) that is sealed against writing and resizing. Other processes of this host map it by
  // MapSealed, and verify nothing again. Off: the pages of the blob's file are mapped.
  bool host_copy = false;
};

// A shard of a tensor in memory that may be read and not written.
struct MappedShard {
  Region region{};
  ByteSpan bytes{};  // the region's elements, dense, in row-major order
};

// The stored bytes of one tensor, mapped and not copied. All its chunks were verified when it was
// made, and they were read for that: later accesses read memory. It holds its own mapping; the
// checkpoint may be closed meanwhile.
//
// What a mapping of a file cannot promise: if somebody overwrites the file in place, the new bytes
// show; if somebody truncates it, an access ends the process with SIGBUS. No part of this library
// does either: blobs are never changed, and a blob that is unlinked, as by a pruning, stays whole
// as long as it is mapped. Where others may, MapOptions::host_copy. Immutable. Thread safety: all
// functions.
class SEALPOINT_EXPORT MappedTensor {
 public:
  virtual ~MappedTensor() = default;
  MappedTensor(const MappedTensor&) = delete;
  MappedTensor& operator=(const MappedTensor&) = delete;

  virtual const TensorInfo& info() const = 0;
  // In stored order, as Checkpoint::Shards has them.
  virtual std::span<const MappedShard> shards() const = 0;
  // All its bytes in row-major order, if one shard is all of it; of an empty tensor, none.
  std::optional<ByteSpan> whole() const;
  // The descriptor of the sealed memory of a host copy, open as long as this is; else nothing. For
  // MapSealed in another process, which gets it by SCM_RIGHTS or as /proc/PID/fd/N.
  virtual std::optional<int> descriptor() const = 0;

 protected:
  MappedTensor() = default;
};

// Maps a tensor. Reads and verifies all of it; of a host copy, what was copied. `checkpoint` is one
// that Checkpoint::Open made. Single process.
//
// Errors: NotFound (no such tensor); Unsupported (not of a host copy: chunks with a codec, or a
// storage whose files have no descriptors, such as an object store: read the tensor instead);
// Corrupt, Incomplete (also: the file became shorter while it was mapped, which is an error and no
// signal since Linux 5.14), Io; InvalidArgument (options).
SEALPOINT_EXPORT Result<std::shared_ptr<const MappedTensor>> MapTensor(
    const Checkpoint& checkpoint, std::string_view name, const MapOptions& options = {});

// Maps the host copy that MapTensor made of this tensor of this checkpoint in a process that is
// trusted to have verified it. The descriptor may be closed afterwards. Errors: NotFound,
// InvalidArgument (memory that is not sealed, or not of this tensor's size), Io.
SEALPOINT_EXPORT Result<std::shared_ptr<const MappedTensor>> MapSealed(const Checkpoint& checkpoint,
                                                                       std::string_view name,
                                                                       int descriptor);

}  // namespace sealpoint

#endif  // SEALPOINT_MAPPED_TENSOR_H_
