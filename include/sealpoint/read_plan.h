// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READ_PLAN_H_
#define SEALPOINT_READ_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/phases.h"
#include "sealpoint/placement.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Positions start, start + step, start + 2 * step, … below `stop`, in one dimension.
struct Slice {
  std::uint64_t start = 0;
  std::uint64_t stop = 0;  // at most the extent of the dimension
  std::uint64_t step = 1;  // at least 1
};

// A request to read elements of a stored tensor into a destination.
struct ReadItem {
  std::string tensor{};
  // Absent: the whole tensor. If the region has no elements, nothing is read and the destination is
  // ignored. The LoadContract still treats the tensor as requested.
  std::optional<Region> region{};
  // Empty, or one step (at least 1) per dimension. In dimension d, the item selects every
  // steps[d]-th position of the region, starting with the first position. An item with steps must
  // have a plain box as its region, and `destination` must have exactly the selected elements. Only
  // chunks with selected elements are read. Coverage cannot be checked for items with steps
  // (LoadContract::coverage).
  std::vector<std::uint64_t> steps{};
  MutableMemoryView destination{};
  // If present, `destination` is a dense local tensor (PlaceTensor), and `part` is the position of
  // the region in this local tensor. Absent: the region fills the whole destination, which is dense
  // or strided. Copies of the request share this object.
  std::shared_ptr<const LocalPart> part{};
  // Expected dtype and shape. If present, dtype and shape are checked as the LoadContract
  // specifies.
  std::optional<DType> dtype{};
  std::optional<Shape> shape{};
  // If present, elements are converted from the stored dtype to the destination's dtype, after
  // their chunk is verified. Absent: bytes are never changed.
  std::optional<Conversion> convert{};
};

// Items that are planned and read together. The destinations are borrowed until the read returns.
// Two destinations must not share a byte (InvalidArgument). Strided destinations may interleave if
// they are boxes of one array, for example columns of a matrix. All other strided destinations with
// interleaving address ranges count as overlapping. An example is one column of every row and a
// different column of every second row.
struct SEALPOINT_EXPORT ReadRequest {
  std::vector<ReadItem> items{};

  // The functions below never fail; errors are detected by Checkpoint::Plan, which compares the
  // destinations with the stored tensors.
  void Add(std::string_view tensor, MutableMemoryView destination);  // the whole tensor
  void Add(std::string_view tensor, Region region, MutableMemoryView destination);
  void Add(std::string_view tensor, Box box, MutableMemoryView destination);
  // Adds the elements at the positions that slices[d] selects in each dimension d.
  void AddSlices(std::string_view tensor, const std::vector<Slice>& slices,
                 MutableMemoryView destination);
  // Adds the parts of the dense local tensor `local` (PlaceTensor), which is in host or device
  // memory. Adds nothing if the layout has no parts.
  void Add(std::string_view tensor, const LocalLayout& layout, const MutableMemoryView& local);
};

// Reaction to a difference between the checkpoint and the request. kError fails the whole load with
// Mismatch before any byte is read. kReport adds the difference to the report and continues. kAllow
// continues without a report.
enum class OnMismatch : std::uint8_t { kError, kReport, kAllow };

// Reactions to each kind of difference, strict by default. A load that continues despite a
// difference never guesses values. Elements are converted only if ReadItem::convert is set.
struct LoadContract {
  // Reaction if a requested tensor is not stored. If the load continues, the destination is left
  // unchanged.
  OnMismatch missing = OnMismatch::kError;
  // Reaction if a stored tensor is not requested by any item.
  OnMismatch unexpected = OnMismatch::kError;
  // Reaction if ReadItem::dtype is not the stored dtype. If the load continues, the bytes are
  // copied unchanged to a destination of raw bytes; a typed destination must have the stored dtype.
  // Different element sizes are always an error. If ReadItem::convert is set, any stored dtype is
  // accepted.
  OnMismatch dtype = OnMismatch::kError;
  // Reaction if ReadItem::shape is not the stored shape. If the load continues, ReadItem::region is
  // read. This region must be within the stored shape.
  OnMismatch shape = OnMismatch::kError;
  // Reaction if the items of a requested tensor do not cover all its elements. Allowed by default,
  // so that a load may read only parts of a tensor.
  OnMismatch coverage = OnMismatch::kAllow;

  // Returns a contract for reading a subset of the tensors.
  static LoadContract Partial() { return {.unexpected = OnMismatch::kAllow}; }
  friend bool operator==(const LoadContract&, const LoadContract&) = default;
};

struct LoadFinding {
  enum class Kind : std::uint8_t { kMissing, kUnexpected, kDType, kShape, kCoverage } kind;
  std::string tensor{};
  std::string detail{};
  friend bool operator==(const LoadFinding&, const LoadFinding&) = default;
};

// Cost of a plan.
struct SEALPOINT_EXPORT PlanSummary {
  std::uint64_t items = 0;
  std::uint64_t bytes_requested = 0;   // delivered to destinations, before any conversion
  std::uint64_t bytes_read = 0;        // stored chunk bytes to read
  std::uint64_t table_bytes_read = 0;  // group lists and record groups, read while planning
  std::uint64_t files = 0;
  std::uint64_t requests = 0;  // coalesced ranges
  std::uint64_t chunks = 0;
  double amplification = 0;  // bytes_read / bytes_requested; 0 if nothing is requested
  std::string ToString() const;
  friend bool operator==(const PlanSummary&, const PlanSummary&) = default;
};

class InternalAccess;  // internal to the library

// An immutable list of coalesced reads and of memory copies that fill the destinations. Copies of a
// ReadPlan object share this list. A plan holds the addresses of the destinations, and is valid as
// long as the checkpoint that made it exists. All functions may be called from any thread.
class SEALPOINT_EXPORT ReadPlan {
 public:
  PlanSummary Summary() const;
  // Returns human-readable text: the summary, and then one line per file with its ranges, bytes and
  // tensors.
  std::string Explain() const;
  // Differences that the contract reports (OnMismatch::kReport).
  const std::vector<LoadFinding>& findings() const&;
  std::vector<LoadFinding> findings() const&&;

 private:
  friend class InternalAccess;
  struct Data;
  explicit ReadPlan(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

struct LoadReport {
  PlanSummary plan{};
  std::vector<LoadFinding> findings{};
  // Bytes verified in device memory (ReadOptions::verify_on_device or gpudirect_storage).
  std::uint64_t bytes_verified_on_device = 0;
  // Number of bytes in bytes_verified_on_device that GPUDirect Storage read. The host did not
  // verify these bytes.
  std::uint64_t bytes_by_gpudirect_storage = 0;
  PhaseReport phases{};
};

}  // namespace sealpoint

#endif  // SEALPOINT_READ_PLAN_H_
