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
#include "sealpoint/status.h"

// What checkpoints hold, whatever way it is stored.

namespace sealpoint {

// How a whole checkpoint is read, or all that is asked for of it.
struct ContentOptions {
  // Patterns of tensors (Checkpoint::MatchTensors). Empty: all tensors and all objects; else no
  // object.
  std::vector<std::string> patterns{};
  int threads = 1;  // at most kThreadsMax; each takes up to 64 MiB of memory, or a chunk
  // Called from any thread, one call at a time. An exception of it ends the call (Cancelled).
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> on_progress{};
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
  // "spc1:" and the digest's digits.
  std::string ToString() const;
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

// The identity of what a checkpoint holds (spec/content-digest.md): equal for the same tensors and
// objects, whatever mesh wrote them, however they are cut and coded. Reads and verifies all of it.
// Single process. Errors: NotFound (a pattern that matches nothing), InvalidArgument (options),
// those of Checkpoint::Read: nothing is computed of damaged bytes.
SEALPOINT_EXPORT Result<ContentDigest> ComputeContentDigest(const Checkpoint& checkpoint,
                                                            const ContentOptions& options = {});

struct CompareOptions {
  // The name in the second checkpoint of a tensor of the first. Null: the same.
  std::function<std::string(std::string_view)> rename{};
  // Read the chunks that differ, and compute how much.
  bool numeric = false;
  int threads = 1;  // at most kThreadsMax; each takes twice what it does there
  // As of ContentOptions; of payload alone.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> on_progress{};
};

// By how much the second tensor differs. Where chunks have equal digests nothing was read:
// changed_count, max_abs, l2 and what is new are those of the whole tensor all the same;
// relative_l2 and cosine are those of the values that were read. A complex number is two values,
// and so is an element of f4_e2m1x2. Values that are finite on both sides count, except for
// changed_count and what is new.
struct NumericDifference {
  std::uint64_t read_count = 0;     // elements
  std::uint64_t changed_count = 0;  // elements, by their bytes
  double max_abs = 0;
  double l2 = 0;                    // of the differences
  double relative_l2 = 0;           // to the norm of the first; infinity if that is zero
  double cosine = 1;                // NaN if one of the norms is zero
  std::uint64_t new_nan_count = 0;  // values that were none in the first
  std::uint64_t new_infinity_count = 0;
  friend bool operator==(const NumericDifference&, const NumericDifference&) = default;
};

enum class ContentChange : std::uint8_t {
  kNone,
  kRemoved,    // only the first checkpoint has it
  kAdded,      // only the second
  kDType,      // dtype or element size
  kShape,      // dtypes are equal
  kMediaType,  // of an object
  kBytes,      // all else is equal
};

// A tensor that differs, or whose placement does.
struct TensorDifference {
  std::string name{};         // in the first, if that has it
  std::string second_name{};  // in the second, likewise
  ContentChange change = ContentChange::kNone;
  bool placement_differs = false;
  // With kBytes: what differs is within so many bytes: those of chunks whose digests differ, and
  // those of elements that differ where payload was compared.
  std::uint64_t changed_bytes = 0;
  std::optional<NumericDifference> numeric{};  // with kBytes, if asked for and the dtype is known
};

struct ObjectDifference {
  std::string name{};
  ContentChange change = ContentChange::kNone;
  friend bool operator==(const ObjectDifference&, const ObjectDifference&) = default;
};

struct SEALPOINT_EXPORT CompareReport {
  // In the order of names; those that only the second has come last.
  std::vector<TensorDifference> tensors{};
  std::vector<ObjectDifference> objects{};
  std::uint64_t equal_tensor_count = 0;  // in content
  std::uint64_t equal_object_count = 0;
  std::uint64_t table_bytes_read = 0;    // of both, besides marker and index
  std::uint64_t payload_bytes_read = 0;  // of both, raw

  // Whether both hold the same tensors (placements do not count) and objects.
  bool is_same() const;
};

// Compares what two checkpoints hold. Where shards of a tensor are the same region on both sides,
// cut into chunks of one size, the digests of their chunks tell, whatever the codecs: 64 bytes are
// read per chunk, and no payload. All other payload is read and compared, some at a time. Single
// process. Damage to payload that is not read is not noticed. Errors: InvalidArgument (options; two
// tensors with one new name), those of Checkpoint::Read of either: nothing damaged is compared.
SEALPOINT_EXPORT Result<CompareReport> Compare(const Checkpoint& first, const Checkpoint& second,
                                               const CompareOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_COMPARE_H_
