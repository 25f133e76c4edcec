// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/dcp_metadata.h"
#include "lib/interop/foreign/failure.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::uint64_t kLooksMax = 10'000'000;

// Capped: shapes of hostile files pass any number.
std::uint64_t SizeOf(const std::vector<std::uint64_t>& extent) {
  if (std::ranges::find(extent, 0u) != extent.end()) return 0;
  std::uint64_t size = 1;
  for (const std::uint64_t n : extent) size = CappedMul(size, n);
  return size;
}

bool LiesIn(const Box& box, const Shape& shape) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.offset[d] > shape[d] || box.extent[d] > shape[d] - box.offset[d]) return false;
  }
  return true;
}

// The first element that both have.
std::optional<Shape> SharedElement(const Box& a, const Box& b) {
  Shape offset;
  for (std::size_t d = 0; d < a.offset.size(); ++d) {
    if (a.offset[d] >= b.offset[d] + b.extent[d] || b.offset[d] >= a.offset[d] + a.extent[d]) {
      return std::nullopt;
    }
    offset.push_back(std::max(a.offset[d], b.offset[d]));
  }
  return offset;
}

// Whether they are cells of a grid, each once; most are.
bool IsGrid(const std::vector<Box>& boxes) {
  const std::size_t ndim = boxes.front().offset.size();
  std::vector<std::map<std::uint64_t, std::uint64_t>> ends(ndim);
  std::set<std::vector<std::uint64_t>> offsets;
  for (const Box& box : boxes) {
    if (!offsets.insert(box.offset).second) return false;
    for (std::size_t d = 0; d < ndim; ++d) {
      const std::uint64_t end = box.offset[d] + box.extent[d];
      if (ends[d].try_emplace(box.offset[d], end).first->second != end) return false;
    }
  }
  for (const auto& cuts : ends) {
    std::uint64_t last = 0;
    for (const auto& [begin, end] : cuts) {
      if (begin < last) return false;
      last = end;
    }
  }
  return true;
}

// Compares neighbours along the dimension with the most cuts.
std::optional<Shape> FindOverlap(std::vector<Box> boxes, const std::string& path) {
  const std::size_t ndim = boxes.front().offset.size();
  if (ndim == 0) return boxes.size() > 1 ? std::optional(Shape()) : std::nullopt;
  if (IsGrid(boxes)) return std::nullopt;
  std::size_t dim = 0;
  std::size_t cuts_max = 0;
  for (std::size_t d = 0; d < ndim; ++d) {
    std::set<std::uint64_t> cuts;
    for (const Box& box : boxes) cuts.insert(box.offset[d]);
    if (cuts.size() > cuts_max) dim = d;
    cuts_max = std::max(cuts_max, cuts.size());
  }
  std::ranges::sort(boxes, {}, [dim](const Box& box) { return box.offset[dim]; });
  std::list<const Box*> active;
  std::uint64_t looks = 0;
  for (const Box& box : boxes) {
    active.remove_if([&](const Box* other) {
      return other->offset[dim] + other->extent[dim] <= box.offset[dim];
    });
    looks += active.size();
    if (looks > kLooksMax) {
      Fail(Code::kLimitExceeded, path, boxes.size(),
           " boxes of a tensor are irregular, expected a grid or fewer boxes");
    }
    for (const Box* const other : active) {
      if (auto shared = SharedElement(box, *other)) return shared;
    }
    active.push_back(&box);
  }
  return std::nullopt;
}

}  // namespace

std::string GapOf(const std::vector<Box>& boxes, const Shape& shape, const std::string& path) {
  std::uint64_t found = 0;
  std::vector<Box> filled;
  for (const Box& box : boxes) {
    if (!LiesIn(box, shape)) {
      return StrCat("box ", ShapeToString(box.extent), " at ", ShapeToString(box.offset),
                    " lies outside of ", ShapeToString(shape));
    }
    found = CappedAdd(found, SizeOf(box.extent));
    if (SizeOf(box.extent) > 0) filled.push_back(box);
  }
  if (found < SizeOf(shape)) {
    return StrCat(found, " elements of ", SizeOf(shape), " are stored");
  }
  const auto shared = filled.empty() ? std::nullopt : FindOverlap(std::move(filled), path);
  return shared ? "two boxes share the element at " + ShapeToString(*shared) : "";
}

}  // namespace sealpoint::internal::foreign
