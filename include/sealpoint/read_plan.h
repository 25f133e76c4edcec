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

// Elements of a stored tensor, and where they go.
struct ReadItem {
  std::string tensor{};
  // Absent: the whole tensor. Nothing is read of a region without elements, and its destination is
  // not looked at; the contract counts it as a request.
  std::optional<Region> region{};
  MutableMemoryView destination{};
  // The region's place in `destination`, a dense local tensor (PlaceTensor). Absent: it is all of
  // the destination, or is strided in it. Copies of the request share it.
  std::shared_ptr<const LocalPart> part{};
  // What the caller believes; compared under the LoadContract if present.
  std::optional<DType> dtype{};
  std::optional<Shape> shape{};
  // The destination holds elements of another dtype than the stored one: each is converted once its
  // chunk is verified. Absent: bytes are never changed.
  std::optional<Conversion> convert{};
};

// Many requests that are planned and read together. Borrows the destinations until the read
// returned. Destinations must not share a byte (InvalidArgument). Strided ones may interleave if
// they are boxes of one array, as columns of a matrix are; other strides whose address ranges
// interleave, such as every row and every second row, count as overlapping.
struct SEALPOINT_EXPORT ReadRequest {
  std::vector<ReadItem> items{};

  // Never fail: Checkpoint::Plan compares the destinations with what is stored.
  void Add(std::string_view tensor, MutableMemoryView destination);  // the whole tensor
  void Add(std::string_view tensor, Region region, MutableMemoryView destination);
  void Add(std::string_view tensor, Box box, MutableMemoryView destination);
  // The parts of the dense local tensor `local` (PlaceTensor), in host memory or on a device;
  // nothing if the layout has no parts.
  void Add(std::string_view tensor, const LocalLayout& layout, const MutableMemoryView& local);
};

// What happens when the stored checkpoint and the request differ. kError fails the whole load with
// Mismatch before a byte is read; kReport goes on and lists it in the report; kAllow goes on.
enum class OnMismatch : std::uint8_t { kError, kReport, kAllow };

// Strict by default. "Goes on" never converts (only ReadItem::convert does) and never guesses:
struct LoadContract {
  // A requested tensor is not stored. Going on leaves the destination as it is.
  OnMismatch missing = OnMismatch::kError;
  // A stored tensor is requested by no item.
  OnMismatch unexpected = OnMismatch::kError;
  // ReadItem::dtype differs. Going on copies the bytes unchanged, to a destination of raw bytes: a
  // typed one must have the stored dtype. If the element sizes differ it is an error all the same.
  // With ReadItem::convert the stored dtype is converted, whatever it is.
  OnMismatch dtype = OnMismatch::kError;
  // ReadItem::shape differs. Going on reads the region, which must be within the stored shape.
  OnMismatch shape = OnMismatch::kError;
  // The items of a requested tensor together do not touch all its elements. Not an error of a
  // partial load, so allowed unless asked.
  OnMismatch coverage = OnMismatch::kAllow;

  // For reading some tensors of many.
  static LoadContract Partial() { return {.unexpected = OnMismatch::kAllow}; }
  friend bool operator==(const LoadContract&, const LoadContract&) = default;
};

struct LoadFinding {
  enum class Kind : std::uint8_t { kMissing, kUnexpected, kDType, kShape, kCoverage } kind;
  std::string tensor{};
  std::string detail{};
  friend bool operator==(const LoadFinding&, const LoadFinding&) = default;
};

// What a plan costs, before it runs.
struct SEALPOINT_EXPORT PlanSummary {
  std::uint64_t items = 0;
  std::uint64_t bytes_requested = 0;   // delivered to destinations, before any conversion
  std::uint64_t bytes_read = 0;        // stored chunk bytes fetched
  std::uint64_t table_bytes_read = 0;  // group lists and record groups (read while planning)
  std::uint64_t files = 0;
  std::uint64_t requests = 0;  // coalesced ranges
  std::uint64_t chunks = 0;
  double amplification = 0;  // bytes_read / bytes_requested; 0 if nothing is requested
  std::string ToString() const;
  friend bool operator==(const PlanSummary&, const PlanSummary&) = default;
};

class InternalAccess;  // the library's own modules

// An immutable list of coalesced reads and copies. Copies share it. Holds the destinations'
// addresses; valid with the checkpoint that made it. Thread safety: as a const object.
class SEALPOINT_EXPORT ReadPlan {
 public:
  PlanSummary Summary() const;
  // The summary, then one line per file: ranges, bytes, tensors. For people.
  std::string Explain() const;
  // What the contract said to report.
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
  // With ReadOptions::verify_on_device or gpudirect_storage: what was verified in device memory.
  std::uint64_t bytes_verified_on_device = 0;
  // How many of these came by GPUDirect Storage, and were not verified on the host.
  std::uint64_t bytes_by_gpudirect_storage = 0;
  PhaseReport phases{};
};

}  // namespace sealpoint

#endif  // SEALPOINT_READ_PLAN_H_
