// SPDX-License-Identifier: Apache-2.0
#include "readers/load/contract.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/view_checks.h"
#include "readers/load/destination_overlap.h"

namespace sealpoint::internal::load {
namespace {

using Kind = LoadFinding::Kind;

constexpr std::array<std::string_view, 5> kKindNames = {"missing", "unexpected", "dtype", "shape",
                                                        "coverage"};
constexpr std::size_t kNamedMax = 4;  // differences beside the first

std::string RegionText(const ReadItem& item) {
  return item.region ? StrCat(", region ", item.region->ToString()) : ", the whole tensor";
}

// The memory of the item's region alone.
Result<MutableMemoryView> MemoryOf(const ReadItem& item, std::uint32_t element_size) {
  if (!item.part) return item.destination;
  if (item.destination.is_dense()) return DestinationOf(*item.part, item.destination, element_size);
  return InvalidArgument("the local tensor of a layout has strides, expected none")
      .AtTensor(item.tensor);
}

// The region with its extents divided by the item's steps: the shape of the destination.
Result<Region> SelectSteps(const ReadItem& item, Region region) {
  const auto refuse = [&](const auto&... text) {
    return InvalidArgument(text...).AtTensor(item.tensor);
  };
  Box& box = region.box;
  if (item.steps.size() != box.extent.size()) {
    return refuse(item.steps.size(), " steps given, expected ", box.extent.size());
  }
  if (item.part || region != Region::Of(box)) {
    return refuse("steps need a whole box and no layout, not ", region.ToString());
  }
  for (std::size_t d = 0; d < box.extent.size(); ++d) {
    if (item.steps[d] == 0)
      return refuse("the step of dimension ", d, " is 0, expected at least 1");
    box.extent[d] = DivideRoundUp(box.extent[d], item.steps[d]);
  }
  return Region::Of(std::move(box));
}

// Compares one request with one index under one contract.
class Resolver {
 public:
  Resolver(const metadata::Metadata& index, const LoadContract& contract)
      : index_(index), contract_(contract), wanted_(index.tensor_count()) {}

  // Takes differences that are forbidden down, so that all are counted; other errors it returns.
  Status AddItem(const ReadItem& item);
  // What shows only when all items are known.
  void CheckUnexpected();
  void CheckCoverage();
  // InvalidArgument if two destinations share memory.
  Status CheckOverlap() const;

  Result<ResolvedRequest> Take() &&;

 private:
  // What is wanted of a stored tensor.
  struct Wanted {
    bool is_wanted = false;
    std::vector<Region> regions;  // kept only if coverage is checked
  };

  Status Resolve(const ReadItem& item);
  std::shared_ptr<const StridedRegion> DensePlace(const Region& region, std::uint32_t element_size);
  Status Differ(OnMismatch policy, Kind kind, std::string_view tensor, std::string detail);
  // Counts a difference that is forbidden; `detail` is told of the first.
  Status Mismatch(Kind kind, std::string_view tensor, std::string_view detail);
  void Forbid(const Status& difference);
  std::string DescribeOthers() const;
  Status CheckDType(const ReadItem& item, const metadata::TensorView& tensor);
  Result<std::optional<convert::ElementConverter>> ChooseConverter(
      const ReadItem& item, const metadata::TensorView& tensor);
  Result<std::optional<Region>> ChooseRegion(const ReadItem& item, const Shape& stored);
  Result<std::optional<Region>> BelievedRegion(const ReadItem& item, const Shape& stored);

  const metadata::Metadata& index_;
  const LoadContract& contract_;
  std::vector<Wanted> wanted_;
  ResolvedRequest resolved_;
  std::map<std::pair<Region, std::uint32_t>, std::shared_ptr<const StridedRegion>> dense_places_;
  Status first_forbidden_;
  std::uint64_t forbidden_count_ = 0;
  std::array<std::uint64_t, kKindNames.size()> kind_counts_ = {};
  std::vector<std::string> others_;  // the first kNamedMax after the first
};

Status Resolver::Differ(OnMismatch policy, Kind kind, std::string_view tensor, std::string detail) {
  if (policy == OnMismatch::kError) return Mismatch(kind, tensor, detail);
  if (policy == OnMismatch::kReport) {
    resolved_.findings.push_back(
        {.kind = kind, .tensor = std::string(tensor), .detail = std::move(detail)});
  }
  return {};
}

Status Resolver::Mismatch(Kind kind, std::string_view tensor, std::string_view detail) {
  ++kind_counts_.at(static_cast<std::size_t>(kind));
  return MakeError(Code::kMismatch, detail).AtTensor(tensor);
}

void Resolver::Forbid(const Status& difference) {
  if (difference.ok()) return;
  if (forbidden_count_++ == 0) {
    first_forbidden_ = difference;
  } else if (others_.size() < kNamedMax) {
    others_.push_back(difference.place().tensor);
  }
}

std::string Resolver::DescribeOthers() const {
  std::string text;
  for (const std::string& name : others_) text += StrCat(text.empty() ? ": " : ", ", name);
  if (others_.size() + 1 < forbidden_count_) text += ", ...";
  std::string counts;
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kind_counts_.at(i) == 0) continue;
    counts += StrCat(counts.empty() ? "" : ", ", kind_counts_.at(i), " ", kKindNames.at(i));
  }
  return StrCat(text, "; in all ", counts);
}

Result<ResolvedRequest> Resolver::Take() && {
  if (forbidden_count_ == 0) return std::move(resolved_);
  return ForbiddenDifference(first_forbidden_.place().tensor, first_forbidden_.message(),
                             forbidden_count_, DescribeOthers());
}

Status Resolver::AddItem(const ReadItem& item) {
  const Status status = Resolve(item);
  if (status.code() != Code::kMismatch) return status;
  Forbid(status);
  return {};
}

Status Resolver::Resolve(const ReadItem& item) {
  const std::optional<std::size_t> number = index_.FindTensor(item.tensor);
  if (!number) {
    return Differ(contract_.missing, Kind::kMissing, item.tensor,
                  StrCat("not in the checkpoint; requested is", RegionText(item).substr(1)));
  }
  const metadata::TensorView tensor = index_.tensor(*number);
  wanted_[*number].is_wanted = true;
  SEALPOINT_RETURN_IF_ERROR(CheckDType(item, tensor));
  SEALPOINT_ASSIGN_OR_RETURN(const std::optional<convert::ElementConverter> converter,
                             ChooseConverter(item, tensor));
  SEALPOINT_ASSIGN_OR_RETURN(std::optional<Region> region, ChooseRegion(item, tensor.shape()));
  if (region && !item.steps.empty()) {
    SEALPOINT_ASSIGN_OR_RETURN(region, SelectSteps(item, *std::move(region)));
  }
  ResolvedItem resolved{.tensor = *number, .destination = {}};
  if (region) {
    const DType dtype = converter ? converter->conversion().to : tensor.dtype();
    const std::uint32_t element_size = converter ? DTypeSizeBytes(dtype) : tensor.element_size();
    SEALPOINT_ASSIGN_OR_RETURN(const MutableMemoryView memory, MemoryOf(item, element_size));
    SEALPOINT_RETURN_IF_ERROR(
        CheckDestination(memory, *region, dtype, element_size).AtTensor(item.tensor));
    resolved.destination =
        memory.is_dense()
            ? Destination::Make(memory, DensePlace(*region, element_size), element_size)
            : Destination::Make(memory, *region, element_size);
    if (!item.steps.empty()) {
      StridedRegion stepped = *resolved.destination->place;
      stepped.steps = item.steps;
      resolved.destination->place = std::make_shared<const StridedRegion>(std::move(stepped));
    }
    if (converter) {
      resolved.destination->converter =
          std::make_shared<const convert::ElementConverter>(*converter);
    }
    if (contract_.coverage != OnMismatch::kAllow) wanted_[*number].regions.push_back(*region);
  }
  resolved_.items.push_back(std::move(resolved));
  return {};
}

// One for all requests of equal regions: a state has many tensors of few shapes.
std::shared_ptr<const StridedRegion> Resolver::DensePlace(const Region& region,
                                                          std::uint32_t element_size) {
  const auto [known, is_new] = dense_places_.try_emplace({region, element_size});
  if (is_new) known->second = StridedRegion::Dense(region, element_size);
  return known->second;
}

Status Resolver::CheckDType(const ReadItem& item, const metadata::TensorView& tensor) {
  if (!item.dtype || *item.dtype == tensor.dtype()) return {};
  std::string detail = StrCat("stored as ", layout::DTypeText(tensor.dtype()), ", requested as ",
                              layout::DTypeText(*item.dtype), RegionText(item));
  // An unregistered dtype has no size to compare; its bytes can only be copied.
  const std::uint32_t wanted_size = DTypeSizeBytes(*item.dtype);
  const bool has_other_size = wanted_size != 0 && wanted_size != tensor.element_size();
  // With a conversion the memory is not made for elements of the believed dtype.
  if (has_other_size && !item.convert) return Mismatch(Kind::kDType, item.tensor, detail);
  return Differ(contract_.dtype, Kind::kDType, item.tensor, std::move(detail));
}

// Empty if the elements are requested as they are stored.
Result<std::optional<convert::ElementConverter>> Resolver::ChooseConverter(
    const ReadItem& item, const metadata::TensorView& tensor) {
  if (!item.convert || item.convert->to == tensor.dtype())
    return std::optional<convert::ElementConverter>();
  if (item.convert->to == DType::kNone) {
    return InvalidArgument("the conversion's dtype is missing").AtTensor(item.tensor);
  }
  std::optional<convert::ElementConverter> converter =
      convert::ElementConverter::Make(tensor.dtype(), *item.convert);
  if (!converter) {
    return Mismatch(
        Kind::kDType, item.tensor,
        StrCat("stored as ", layout::DTypeText(tensor.dtype()), ", which does not convert to ",
               layout::DTypeText(item.convert->to), RegionText(item)));
  }
  return converter;
}

// The region to read; nothing where it has no elements.
Result<std::optional<Region>> Resolver::ChooseRegion(const ReadItem& item, const Shape& stored) {
  if (item.shape && *item.shape != stored) {
    SEALPOINT_RETURN_IF_ERROR(
        Differ(contract_.shape, Kind::kShape, item.tensor,
               StrCat("stored with shape ", ShapeToString(stored), ", requested with ",
                      ShapeToString(*item.shape), RegionText(item))));
    if (!item.region) return BelievedRegion(item, stored);
  }
  if (item.region) {
    const auto has_elements = HasElements(stored, *item.region);
    if (!has_elements.ok()) return has_elements.status().AtTensor(item.tensor);
    return *has_elements ? item.region : std::nullopt;
  }
  if (std::find(stored.begin(), stored.end(), 0u) != stored.end()) return std::optional<Region>();
  return std::optional(Region::Whole(stored));
}

// The whole tensor in the caller's belief: the destination has room for that and for no more.
Result<std::optional<Region>> Resolver::BelievedRegion(const ReadItem& item, const Shape& stored) {
  const Shape& shape = *item.shape;
  const Result<std::uint64_t> count = ElementCount(shape);
  if (count && *count == 0) return std::optional<Region>();
  if (count) {
    Region region = Region::Whole(shape);
    if (CheckRegion(stored, region).ok()) return std::optional(std::move(region));
  }
  return Mismatch(Kind::kShape, item.tensor,
                  StrCat("the requested shape ", ShapeToString(shape), " is not within the stored ",
                         ShapeToString(stored)));
}

void Resolver::CheckUnexpected() {
  if (contract_.unexpected == OnMismatch::kAllow) return;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].is_wanted) continue;
    const metadata::TensorView tensor = index_.tensor(i);
    Forbid(Differ(contract_.unexpected, Kind::kUnexpected, tensor.name(),
                  DescribeUnexpected(tensor, "item")));
  }
}

void Resolver::CheckCoverage() {
  if (contract_.coverage == OnMismatch::kAllow) return;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i].is_wanted) continue;
    const metadata::TensorView tensor = index_.tensor(i);
    const Uncovered uncovered = FindUncovered(tensor.shape(), wanted_[i].regions);
    if (uncovered.count == 0) continue;
    Forbid(Differ(contract_.coverage, Kind::kCoverage, tensor.name(),
                  DescribeUncovered(tensor, uncovered, "item")));
  }
}

Status Resolver::CheckOverlap() const {
  std::vector<const std::optional<Destination>*> destinations;
  destinations.reserve(resolved_.items.size());
  for (const ResolvedItem& item : resolved_.items) destinations.push_back(&item.destination);
  const auto found = FindOverlap(destinations);
  if (!found) return {};
  const ResolvedItem& first = resolved_.items[found->first];
  const ResolvedItem& second = resolved_.items[found->second];
  return InvalidArgument("the destination of region ", second.destination->region().ToString(),
                         " overlaps that of region ", first.destination->region().ToString(),
                         " of tensor ", index_.tensor(first.tensor).name())
      .AtTensor(index_.tensor(second.tensor).name());
}

}  // namespace

std::string DescribeUnexpected(const metadata::TensorView& tensor, std::string_view by_whom) {
  return StrCat("the stored tensor of shape ", ShapeToString(tensor.shape()), " and dtype ",
                layout::DTypeText(tensor.dtype()), " is requested by no ", by_whom,
                " (LoadContract::Partial() allows that)");
}

std::string DescribeUncovered(const metadata::TensorView& tensor, const Uncovered& uncovered,
                              std::string_view by_whom) {
  return StrCat(uncovered.count, " elements of shape ", ShapeToString(tensor.shape()),
                " are requested by no ", by_whom, ", such as region ",
                Region::Of(uncovered.example.value_or(Box())).ToString());
}

Status ForbiddenDifference(std::string_view tensor, std::string_view detail, std::uint64_t count,
                           std::string_view which) {
  const std::string others =
      count == 1 ? ""
                 : StrCat("; and ", count - 1, " more difference", count == 2 ? "" : "s", which);
  return MakeError(Code::kMismatch, detail, others).AtTensor(tensor);
}

Status CheckCoverageOfSteps(const ReadRequest& request, const LoadContract& contract) {
  if (contract.coverage == OnMismatch::kAllow) return {};
  for (const ReadItem& item : request.items) {
    if (item.steps.empty()) continue;
    return InvalidArgument("coverage cannot be checked for an item with steps, expected kAllow")
        .AtTensor(item.tensor);
  }
  return {};
}

Result<ResolvedRequest> ResolveRequest(const metadata::Metadata& index, const ReadRequest& request,
                                       const LoadContract& contract) {
  SEALPOINT_RETURN_IF_ERROR(CheckCoverageOfSteps(request, contract));
  Resolver resolver(index, contract);
  for (const ReadItem& item : request.items) SEALPOINT_RETURN_IF_ERROR(resolver.AddItem(item));
  SEALPOINT_RETURN_IF_ERROR(resolver.CheckOverlap());
  resolver.CheckUnexpected();
  resolver.CheckCoverage();
  return std::move(resolver).Take();
}

}  // namespace sealpoint::internal::load
