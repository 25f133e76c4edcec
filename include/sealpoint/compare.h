// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COMPARE_H_
#define SEALPOINT_COMPARE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/digest.h"
#include "sealpoint/export.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/threads.h"

// Compares the contents of checkpoints, regardless of how they are stored.

namespace sealpoint {

// Options of functions that read the whole content of a checkpoint.
struct ContentOptions {
  // Patterns of tensors (Checkpoint::MatchTensors). Empty: all tensors and all objects. Otherwise
  // objects are excluded.
  std::vector<std::string> patterns{};
  // kThreadsAuto: 1. Each uses up to 64 MiB, or one chunk if larger.
  int threads = kThreadsAuto;
  PhaseCallback on_progress{};  // kCompare
};

struct NamedDigest {
  std::string name{};
  Digest digest{};
  friend bool operator==(const NamedDigest&, const NamedDigest&) = default;
};

struct SEALPOINT_EXPORT ContentDigest {
  Digest digest{};
  std::uint64_t raw_bytes = 0;         // of tensors and objects
  std::vector<NamedDigest> tensors{};  // sorted by name
  std::vector<NamedDigest> objects{};
  // "spc1:" and the hexadecimal digest.
  std::string ToString() const;
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

// Computes the digest of a checkpoint's content (spec/content-digest.md). It is the same for equal
// tensors and objects, regardless of mesh, shards, chunks and codecs. Reads and verifies all
// content. Single process. Errors: NotFound (a pattern without a match), InvalidArgument (options),
// those of Checkpoint::Read; damaged content has no digest.
SEALPOINT_EXPORT Result<ContentDigest> ComputeContentDigest(const Checkpoint& checkpoint,
                                                            const ContentOptions& options = {});

struct CompareOptions {
  // Maps the name of a tensor in the first checkpoint to its name in the second. Null: same name.
  std::function<std::string(std::string_view)> rename{};
  // Compute numeric differences; reads all chunks that differ.
  bool numeric = false;
  // kThreadsAuto: 1. Each uses twice the memory of ContentOptions.
  int threads = kThreadsAuto;
  PhaseCallback on_progress{};  // kCompare; counts payload only
};

// Numeric difference of the second tensor from the first. Chunks with equal digests are not read.
// changed_count, max_abs, l2 and the counts of new values nevertheless apply to the whole tensor;
// relative_l2 and cosine apply to the values that were read. A complex number and an element of
// f4_e2m1x2 count as two values. Only values that are finite on both sides are used, except for
// changed_count and the counts of new values.
struct NumericDifference {
  std::uint64_t read_count = 0;     // elements
  std::uint64_t changed_count = 0;  // elements with different bytes
  double max_abs = 0;
  double l2 = 0;                    // of the differences
  double relative_l2 = 0;           // relative to the norm of the first; infinity if that is zero
  double cosine = 1;                // NaN if one of the norms is zero
  std::uint64_t new_nan_count = 0;  // values that are not NaN in the first
  std::uint64_t new_infinity_count = 0;
  friend bool operator==(const NumericDifference&, const NumericDifference&) = default;
};

enum class ContentChange : std::uint8_t {
  kNone,
  kRemoved,    // only in the first checkpoint
  kAdded,      // only in the second checkpoint
  kDType,      // dtype or element size
  kShape,      // with equal dtypes
  kMediaType,  // of an object
  kBytes,      // everything else is equal
};

// A tensor with different content or placement.
struct TensorDifference {
  std::string name{};         // in the first checkpoint, if it exists there
  std::string second_name{};  // in the second checkpoint, likewise
  ContentChange change = ContentChange::kNone;
  bool placement_differs = false;
  // With kBytes: upper bound of the bytes that differ. It counts chunks with different digests, and
  // elements that differ where payload was compared.
  std::uint64_t changed_bytes = 0;
  std::optional<NumericDifference> numeric{};  // with kBytes, if requested and the dtype is known
};

struct ObjectDifference {
  std::string name{};
  ContentChange change = ContentChange::kNone;
  friend bool operator==(const ObjectDifference&, const ObjectDifference&) = default;
};

struct SEALPOINT_EXPORT CompareReport {
  // Sorted by name; tensors that exist only in the second checkpoint are last.
  std::vector<TensorDifference> tensors{};
  std::vector<ObjectDifference> objects{};
  std::uint64_t equal_tensor_count = 0;  // in content
  std::uint64_t equal_object_count = 0;
  std::uint64_t table_bytes_read = 0;    // of both, in addition to marker and index
  std::uint64_t payload_bytes_read = 0;  // of both, decoded

  // True if both have the same tensors and objects; placements are ignored.
  bool is_same() const;
};

// Compares the contents of two checkpoints. If the shards of a tensor have the same regions and
// chunk size on both sides, only chunk digests are compared, regardless of codecs: 64 bytes per
// chunk and no payload. All other payload is read and compared in pieces. Single process. Damage to
// payload that is not read is not detected. Errors: InvalidArgument (options; two tensors mapped to
// one name), those of Checkpoint::Read for either checkpoint; damaged content is not compared.
SEALPOINT_EXPORT Result<CompareReport> Compare(const Checkpoint& first, const Checkpoint& second,
                                               const CompareOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_COMPARE_H_
