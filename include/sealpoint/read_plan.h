// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READ_PLAN_H_
#define SEALPOINT_READ_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/conversion.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/phases.h"
#include "sealpoint/placement.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Elements of a stored tensor and their destination.
struct ReadItem {
  std::string tensor{};
  // Absent: the whole tensor. A region without elements reads nothing and its destination is
  // ignored; for the contract it counts as a request.
  std::optional<Region> region{};
  MutableMemoryView destination{};
  // Position of the region in `destination`, a dense local tensor (PlaceTensor). Absent: the region
  // is the whole destination, dense or strided. Copies of the request share it.
  std::shared_ptr<const LocalPart> part{};
  // Expected dtype and shape; checked according to the LoadContract if present.
  std::optional<DType> dtype{};
  std::optional<Shape> shape{};
  // Convert elements from the stored dtype to the destination's, after their chunk is verified.
  // Absent: bytes are never changed.
  std::optional<Conversion> convert{};
};

// Requests that are planned and read together. Borrows the destinations until the read returns.
// Destinations must not share a byte (InvalidArgument). Strided destinations may interleave if they
// are boxes of one array, such as columns of a matrix. Other strides with interleaving address
// ranges, such as every row and every second row, count as overlapping.
struct SEALPOINT_EXPORT ReadRequest {
  std::vector<ReadItem> items{};

  // These never fail: Checkpoint::Plan compares the destinations with the stored tensors.
  void Add(std::string_view tensor, MutableMemoryView destination);  // the whole tensor
  void Add(std::string_view tensor, Region region, MutableMemoryView destination);
  void Add(std::string_view tensor, Box box, MutableMemoryView destination);
  // Adds the parts of the dense local tensor `local` (PlaceTensor), in host or device memory; adds
  // nothing if the layout has no parts.
  void Add(std::string_view tensor, const LocalLayout& layout, const MutableMemoryView& local);
};

// Reaction to a difference between checkpoint and request. kError fails the whole load with
// Mismatch before any byte is read; kReport continues and adds it to the report; kAllow continues.
enum class OnMismatch : std::uint8_t { kError, kReport, kAllow };

// Strict by default. Continuing never converts (only ReadItem::convert does) and never guesses.
struct LoadContract {
  // A requested tensor is not stored. If allowed, its destination is left unchanged.
  OnMismatch missing = OnMismatch::kError;
  // A stored tensor is requested by no item.
  OnMismatch unexpected = OnMismatch::kError;
  // ReadItem::dtype differs. If allowed, the bytes are copied unchanged to a destination of raw
  // bytes; a typed destination must have the stored dtype. Different element sizes are always an
  // error. ReadItem::convert accepts any stored dtype.
  OnMismatch dtype = OnMismatch::kError;
  // ReadItem::shape differs. If allowed, the region is read; it must be within the stored shape.
  OnMismatch shape = OnMismatch::kError;
  // The items of a requested tensor do not cover all its elements. Allowed by default, as in
  // partial loads.
  OnMismatch coverage = OnMismatch::kAllow;

  // For reading a subset of the tensors.
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

// An immutable list of coalesced reads and copies. Copies share it. It holds the addresses of the
// destinations and is valid as long as the checkpoint that made it. Thread safety: as a const
// object.
class SEALPOINT_EXPORT ReadPlan {
 public:
  PlanSummary Summary() const;
  // Human-readable: the summary, then one line per file with ranges, bytes and tensors.
  std::string Explain() const;
  // Differences that the contract reports.
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
  // Number of these bytes that were read by GPUDirect Storage and not verified on the host.
  std::uint64_t bytes_by_gpudirect_storage = 0;
  PhaseReport phases{};
};

}  // namespace sealpoint

#endif  // SEALPOINT_READ_PLAN_H_
