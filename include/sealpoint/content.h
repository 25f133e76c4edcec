// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_CONTENT_H_
#define SEALPOINT_CONTENT_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/digest.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

// Functions that digest, compare and summarize the contents of checkpoints. The results do not
// depend on how the contents are stored.

namespace sealpoint {

// Options of functions that read the whole content of a checkpoint.
struct ContentOptions {
  // Patterns of tensor names (Checkpoint::MatchTensors). If the list is empty, all tensors and all
  // objects are read. Otherwise only the matching tensors are read; objects are not read.
  std::vector<std::string> patterns{};
  // Number of threads; kThreadsAuto: 1. Each thread uses up to 64 MiB of memory, or the size of one
  // chunk if the chunk is larger than 64 MiB.
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
  std::uint64_t raw_bytes = 0;         // total size of tensors and objects
  std::vector<NamedDigest> tensors{};  // sorted by name
  std::vector<NamedDigest> objects{};
  // Returns "spc1:" followed by the hexadecimal digest.
  std::string ToString() const;
  friend bool operator==(const ContentDigest&, const ContentDigest&) = default;
};

// Computes the digest of a checkpoint's content (spec/content-digest.md). Checkpoints with equal
// tensors and objects have the same digest, regardless of mesh, shards, chunks and codecs. Reads
// and verifies all content; damaged content is an error. Single process. Errors: NotFound (a
// pattern matches nothing), InvalidArgument (options), the errors of Checkpoint::Read.
SEALPOINT_EXPORT Result<ContentDigest> ComputeContentDigest(const Checkpoint& checkpoint,
                                                            const ContentOptions& options = {});

struct NamedFingerprint {
  std::string name{};
  Fingerprint fingerprint{};
  friend bool operator==(const NamedFingerprint&, const NamedFingerprint&) = default;
};

struct SEALPOINT_EXPORT ContentFingerprint {
  Digest digest{};                          // covers names, dtypes, shapes and fingerprints
  std::vector<NamedFingerprint> tensors{};  // sorted by name
  // Returns "spfc1:" followed by the hexadecimal digest.
  std::string ToString() const;
  friend bool operator==(const ContentFingerprint&, const ContentFingerprint&) = default;
};

// Return the fingerprint of the tensors of a checkpoint (spec/fingerprint.md). The fingerprint does
// not depend on mesh, shards, chunks and codecs. ComputeContentFingerprint reads and verifies the
// tensors. StoredContentFingerprint uses the fingerprints that the writer stored, and reads no
// payload. Single process. Errors: NotFound (a pattern matches nothing; StoredContentFingerprint: a
// tensor has no stored fingerprint), InvalidArgument (options), the errors of Checkpoint::Read.
SEALPOINT_EXPORT Result<ContentFingerprint> ComputeContentFingerprint(
    const Checkpoint& checkpoint, const ContentOptions& options = {});
SEALPOINT_EXPORT Result<ContentFingerprint> StoredContentFingerprint(
    const Checkpoint& checkpoint, const ContentOptions& options = {});

// Computes the fingerprints of tensors and compares them with the stored fingerprints. Returns one
// error (Corrupt, R-FPR-03) for each tensor with a different fingerprint. Tensors without a stored
// fingerprint are not read. Errors: the errors of ComputeContentFingerprint.
SEALPOINT_EXPORT Result<std::vector<Status>> CheckFingerprints(const Checkpoint& checkpoint,
                                                               const ContentOptions& options = {});

struct CompareOptions {
  // Patterns of tensor names (Checkpoint::MatchTensors). If the list is empty, all tensors and all
  // objects are compared. Otherwise a tensor is compared if its name matches in at least one of the
  // checkpoints; objects are not compared.
  std::vector<std::string> patterns{};
  // Maps the name of a tensor in the first checkpoint to its name in the second checkpoint. Null:
  // the names are the same.
  std::function<std::string(std::string_view)> rename{};
  // Compute numeric differences. This reads all chunks that differ.
  bool numeric = false;
  // Read no payload. Content without comparable digests is reported as kUnknown. Cannot be combined
  // with `numeric`.
  bool digests_only = false;
  // Number of threads; kThreadsAuto: 1. A thread that compares needs twice as much memory as a
  // thread that computes statistics (ContentOptions::threads).
  int threads = kThreadsAuto;
  PhaseCallback on_progress{};  // kCompare; counts only payload
};

// Numeric difference of a tensor between the first and the second checkpoint. Chunks with equal
// digests are not read, because their values do not differ. Therefore changed_count, max_abs, l2
// and the counts of new values cover the whole tensor. The results relative_l2 and cosine cover
// only the values that were read. A complex number and an element of f4_e2m1x2 count as two values
// each. For max_abs, l2, relative_l2 and cosine, only values that are finite in both tensors count.
struct NumericDifference {
  std::uint64_t read_count = 0;     // elements that were read
  std::uint64_t changed_count = 0;  // elements with different bytes
  double max_abs = 0;
  double l2 = 0;  // norm of the differences
  // l2 divided by the norm of the first tensor. If this norm is zero, relative_l2 is infinity, or 0
  // if l2 is also 0.
  double relative_l2 = 0;
  double cosine = 1;                // NaN if the norm of either tensor is zero
  std::uint64_t new_nan_count = 0;  // values that are NaN only in the second tensor
  std::uint64_t new_infinity_count = 0;
  friend bool operator==(const NumericDifference&, const NumericDifference&) = default;
};

enum class ContentChange : std::uint8_t {
  kNone,
  kRemoved,    // only in the first checkpoint
  kAdded,      // only in the second checkpoint
  kDType,      // the dtype or the element size differs
  kShape,      // the shape differs; the dtypes are equal
  kMediaType,  // the media type of an object differs
  kBytes,      // only the bytes differ
  kUnknown,    // no difference found, but some content was not compared (digests_only)
};

// A tensor with different contents, placements or attributes in the two checkpoints.
struct TensorDifference {
  std::string name{};         // name in the first checkpoint; empty if absent there
  std::string second_name{};  // name in the second checkpoint; empty if absent there
  ContentChange change = ContentChange::kNone;
  bool placement_differs = false;
  bool attributes_differ = false;
  // If `change` is kBytes: upper bound of the number of bytes that differ. If only digests were
  // compared, all bytes of chunks with different digests are counted; if payload was compared, all
  // bytes of elements that differ are counted.
  std::uint64_t changed_bytes = 0;
  // Set if `change` is kBytes, numeric differences were requested and the dtype is known.
  std::optional<NumericDifference> numeric{};
};

struct ObjectDifference {
  std::string name{};
  ContentChange change = ContentChange::kNone;
  friend bool operator==(const ObjectDifference&, const ObjectDifference&) = default;
};

struct SEALPOINT_EXPORT CompareReport {
  // Sorted by name. Tensors that exist only in the second checkpoint come last.
  std::vector<TensorDifference> tensors{};
  std::vector<ObjectDifference> objects{};
  std::uint64_t equal_tensor_count = 0;  // tensors with equal content
  std::uint64_t equal_object_count = 0;
  std::uint64_t table_bytes_read = 0;    // from both checkpoints; without marker and index
  std::uint64_t payload_bytes_read = 0;  // from both checkpoints, decoded

  // True if both checkpoints have the same tensors and objects. Placements and attributes are
  // ignored.
  bool is_same() const;
};

// Compares the contents of two checkpoints. If the shards of a tensor have the same regions and the
// same chunk size in both checkpoints, only chunk digests are compared, regardless of codecs. In
// this case, 64 bytes are read per chunk, and no payload. The payload of all other tensors is read
// and compared in pieces. Damaged payload is an error if it is read; payload that is not read is
// not checked. Single process. Errors: InvalidArgument (options; two tensors are mapped to the same
// name), NotFound (a pattern matches no name in either checkpoint), the errors of Checkpoint::Read
// for either checkpoint.
SEALPOINT_EXPORT Result<CompareReport> Compare(const Checkpoint& first, const Checkpoint& second,
                                               const CompareOptions& options = {});

// Statistics of the values of one or more tensors. A complex number and an element of f4_e2m1x2
// count as two values each. A bool counts as 0 or 1. Sums, minimum and maximum cover only finite
// values and are computed in double precision.
struct SEALPOINT_EXPORT ValueStatistics {
  std::uint64_t value_count = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t positive_infinity_count = 0;
  std::uint64_t negative_infinity_count = 0;
  std::uint64_t zero_count = 0;  // positive and negative zeros
  // For 8-bit and 4-bit floating-point dtypes: number of values with the greatest magnitude that
  // the dtype can represent. These values may have been clipped. 0 for other dtypes.
  std::uint64_t saturated_count = 0;
  // Number of trailing zeros in row-major order; for several tensors, the sum of the tensors'
  // counts. A long tail of zeros may indicate state that was never written.
  std::uint64_t zero_tail_count = 0;
  // Minimum and maximum; valid if at least one value is finite.
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squared_deviations = 0;  // sum of squared deviations from the mean
  double squares = 0;             // sum of squares
  // Number of finite nonzero values for each exponent, floor(log2(magnitude)). Subnormal values of
  // f64 are counted with exponent -1023.
  std::map<int, std::uint64_t> exponents{};

  std::uint64_t nonfinite_count() const {
    return nan_count + positive_infinity_count + negative_infinity_count;
  }
  std::uint64_t finite_count() const { return value_count - nonfinite_count(); }
  double standard_deviation() const;  // of the population; 0 if there are no values
  double l2() const;                  // the L2 norm of the values
  // Adds the statistics of another tensor.
  void Add(const ValueStatistics& more);
  friend bool operator==(const ValueStatistics&, const ValueStatistics&) = default;
};

struct TensorStatistics {
  std::string name{};
  DType dtype = DType::kNone;
  Shape shape{};
  std::optional<ValueStatistics> values{};  // absent if the dtype is not registered
  friend bool operator==(const TensorStatistics&, const TensorStatistics&) = default;
};

// Computes statistics of the selected tensors, sorted by name. Reads and verifies every selected
// tensor that has a registered dtype. The result does not depend on the number of threads. Single
// process. Errors: the errors of ComputeContentDigest.
SEALPOINT_EXPORT Result<std::vector<TensorStatistics>> ComputeStatistics(
    const Checkpoint& checkpoint, const ContentOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_CONTENT_H_
