// SPDX-License-Identifier: Apache-2.0
//
// Split rules against a model that cuts plain lists of positions, one by one.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "sealpoint/placement.h"
#include "tests/property/layout_generators.h"
#include "tests/property/placement_generators.h"

namespace sealpoint::test {
namespace {

constexpr std::uint64_t kPadding = ~0ull;
using List = std::vector<std::uint64_t>;

// torch.chunk, or pieces that differ by at most one, of a list.
std::vector<List> Cut(const List& list, std::uint64_t count, SplitRule rule, std::uint64_t unit) {
  std::vector<List> units;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i % unit == 0) units.emplace_back();
    units.back().push_back(list[i]);
  }
  std::vector<List> pieces(count);
  const std::uint64_t chunk = (units.size() + count - 1) / count;
  for (std::size_t i = 0; i < units.size(); ++i) {
    std::uint64_t piece = i / std::max<std::uint64_t>(chunk, 1);
    if (rule == SplitRule::kEven) {
      for (piece = 0;
           i >= (piece + 1) * (units.size() / count) + std::min(piece + 1, units.size() % count);) {
        ++piece;
      }
    }
    pieces[piece].insert(pieces[piece].end(), units[i].begin(), units[i].end());
  }
  return pieces;
}

void Extend(List& list, const List& more) { list.insert(list.end(), more.begin(), more.end()); }

// What one rank has, as lists of positions per dimension and then of elements.
struct Model {
  Shape shape;
  std::vector<List> dims;
  bool is_flat = false;
  List elements;  // row-major element numbers of the global tensor in local order, or kPadding

  explicit Model(const Shape& global) : shape(global), dims(global.size()) {
    for (std::size_t d = 0; d < global.size(); ++d) {
      dims[d].resize(global[d]);
      std::iota(dims[d].begin(), dims[d].end(), 0);
    }
  }

  void Enumerate() {
    elements = {0};
    for (std::size_t d = 0; d < dims.size(); ++d) {
      List longer;
      for (const std::uint64_t outer : elements) {
        for (const std::uint64_t at : dims[d]) {
          const bool is_padding = outer == kPadding || at >= shape[d];
          longer.push_back(is_padding ? kPadding : outer * shape[d] + at);
        }
      }
      elements = std::move(longer);
    }
  }
};

struct Case {
  Mesh mesh = AnyMesh();
  Shape shape = AnyShapeWithEmpties();
  Placement placement = AnyPlacement(mesh, shape);
};

std::uint64_t SizeOf(const Mesh& mesh, const std::string& axis) {
  return mesh.axes()[*mesh.Find(axis)].second;
}

Model ModelOf(const Case& one, const std::vector<std::uint32_t>& coordinates) {
  Model model(one.shape);
  const auto at = [&](const std::string& axis) { return coordinates[*one.mesh.Find(axis)]; };
  for (const PlacementRule& rule : one.placement) {
    if (const auto* shard = std::get_if<Shard>(&rule)) {
      List& dim = model.dims[static_cast<std::size_t>(shard->dim)];
      dim = Cut(dim, SizeOf(one.mesh, shard->axis), shard->rule, shard->unit)[at(shard->axis)];
    } else if (const auto* strided = std::get_if<StridedShard>(&rule)) {
      List& dim = model.dims[static_cast<std::size_t>(strided->dim)];
      List mine;
      for (const List& piece : Cut(dim, strided->split_factor, SplitRule::kCeilChunk, 1)) {
        const std::uint64_t count = SizeOf(one.mesh, strided->axis);
        Extend(mine, Cut(piece, count, SplitRule::kCeilChunk, 1)[at(strided->axis)]);
      }
      dim = mine;
    } else if (const auto* sections = std::get_if<ShardSections>(&rule)) {
      List& dim = model.dims[static_cast<std::size_t>(sections->dim)];
      List mine;
      auto next = dim.begin();
      for (const std::uint64_t size : sections->sections) {
        const List section(next, next + static_cast<std::ptrdiff_t>(size));
        next += static_cast<std::ptrdiff_t>(size);
        const std::uint64_t count = SizeOf(one.mesh, sections->axis);
        Extend(mine, Cut(section, count, sections->rule, 1)[at(sections->axis)]);
      }
      dim = mine;
    } else if (const auto* pad = std::get_if<Pad>(&rule)) {
      List& dim = model.dims[static_cast<std::size_t>(pad->dim)];
      while (dim.size() < pad->size) dim.push_back(dim.size());
    } else if (const auto* flat = std::get_if<ShardFlat>(&rule)) {
      model.Enumerate();
      model.is_flat = true;
      std::uint64_t count = 1;
      std::uint64_t index = 0;
      for (const std::string& axis : flat->axes) {
        count *= SizeOf(one.mesh, axis);
        index = index * SizeOf(one.mesh, axis) + at(axis);
      }
      model.elements = Cut(model.elements, count, SplitRule::kCeilChunk, flat->unit)[index];
    }
  }
  if (!model.is_flat) model.Enumerate();
  return model;
}

// The local tensor that the library's parts describe; padding where none lies.
List Rebuild(const Shape& shape, const LocalLayout& layout, std::size_t size) {
  List local(size, kPadding);
  for (const LocalPart& part : layout.parts) {
    const List elements = Elements(shape, part.region);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      std::uint64_t at = part.local_offset + i;
      if (!part.local_strides.empty()) {
        at = part.local_offset;
        std::uint64_t rest = i;
        for (std::size_t d = shape.size(); d-- > 0;) {
          at += rest % part.region.box.extent[d] * part.local_strides[d];
          rest /= part.region.box.extent[d];
        }
      }
      RC_ASSERT(at < local.size());
      RC_ASSERT(local[at] == kPadding);
      local[at] = elements[i];
    }
  }
  return local;
}

RC_GTEST_PROP(PlacementProperty, GivesEachRankWhatCuttingListsGives, ()) {
  const Case one;
  for (int rank = 0; rank < one.mesh.size(); ++rank) {
    const auto layout = PlaceTensor(one.mesh, rank, one.shape, one.placement);
    if (!layout.ok()) RC_FAIL(layout.error().ToString());
    Model model = ModelOf(one, one.mesh.CoordinatesOf(rank).value());
    std::uint64_t size = 1;
    for (const std::uint64_t extent : layout->shape) size *= extent;
    if (model.is_flat) {
      RC_ASSERT(model.elements.size() <= size);
      model.elements.resize(size, kPadding);
    }
    RC_ASSERT(Rebuild(one.shape, *layout, size) == model.elements);
  }
}

RC_GTEST_PROP(PlacementProperty, CoversEachElementOnceButForReplicas, ()) {
  const Case one;
  std::uint64_t count = 1;
  for (const std::uint64_t extent : one.shape) count *= extent;
  std::vector<int> covered(count);
  for (int rank = 0; rank < one.mesh.size(); ++rank) {
    const auto layout = PlaceTensor(one.mesh, rank, one.shape, one.placement).value();
    RC_ASSERT(std::is_sorted(layout.replicas.begin(), layout.replicas.end()));
    RC_ASSERT(std::count(layout.replicas.begin(), layout.replicas.end(), rank) == 1);
    for (const int other : layout.replicas) {
      RC_ASSERT(PlaceTensor(one.mesh, other, one.shape, one.placement).value() == layout);
    }
    if (layout.replicas.front() != rank) continue;
    for (const LocalPart& part : layout.parts) {
      RC_ASSERT(CheckRegion(one.shape, part.region).ok());
      for (const std::uint64_t element : Elements(one.shape, part.region)) ++covered[element];
    }
  }
  RC_ASSERT(std::count(covered.begin(), covered.end(), 1) == static_cast<std::ptrdiff_t>(count));
}

RC_GTEST_PROP(PlacementProperty, TextIsReadBack, ()) {
  const Case one;
  const std::vector<std::string> texts = ToStrings(one.placement);
  const auto parsed = ParsePlacement(texts);
  if (!parsed.ok()) RC_FAIL(parsed.error().ToString());
  RC_ASSERT(*parsed == one.placement);
}

// Words of the language in any order, so that some are rules.
RC_GTEST_PROP(PlacementProperty, AnyTextIsRefusedOrARuleThatIsReadBack, ()) {
  constexpr std::array kWords = {"shard",
                                 "shard_flat",
                                 "shard_sections",
                                 "strided_shard",
                                 "pad",
                                 "replicate",
                                 "hold_here",
                                 "(",
                                 ")",
                                 ",",
                                 ", ",
                                 "dim ",
                                 "unit ",
                                 "size ",
                                 "split factor ",
                                 "even",
                                 "+",
                                 " x ",
                                 "0",
                                 "7",
                                 "tensor",
                                 "data",
                                 "\xff",
                                 " "};
  std::string text = kWords.at(AnyIn(0, 6));
  if (AnyIn(0, 3) > 0) text += "(";
  if (AnyIn(0, 1) > 0) text += "dim 0, ";
  for (std::uint64_t count = AnyIn(0, 6); count > 0; --count) {
    text += kWords.at(AnyIn(0, kWords.size() - 1));
  }
  if (AnyIn(0, 3) > 0) text += ")";
  const auto rule = ParsePlacementRule(text);
  RC_CLASSIFY(rule.ok());
  if (rule.ok()) RC_ASSERT(ParsePlacementRule(ToString(*rule)).value() == *rule);
}

RC_GTEST_PROP(PlacementProperty, BucketsGiveEachMemberElementToOneRange, ()) {
  std::vector<BucketMember> members(AnyIn(0, 4));
  std::uint64_t size = 0;
  for (BucketMember& member : members) {
    member.box = Region::Whole(AnyShape(2, 6)).box;
    member.offset = size + AnyIn(0, 2);
    size = member.offset + Region::Of(member.box).element_count();
  }
  size += AnyIn(0, 3);
  const std::uint64_t count = AnyIn(1, 5);
  std::vector<int> covered(size);
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::uint64_t range = (size + count - 1) / count;
    for (const BucketPart& part : PlaceBucket(members, size, count, index).value()) {
      RC_ASSERT(part.region.run.begin < part.region.run.end);
      for (std::uint64_t i = 0; i < part.region.element_count(); ++i) {
        const std::uint64_t at = members[part.member].offset + part.region.run.begin + i;
        RC_ASSERT(at == index * range + part.local_offset + i);
        ++covered[at];
      }
    }
  }
  std::vector<int> expected(size);
  for (const BucketMember& member : members) {
    for (std::uint64_t i = 0; i < Region::Of(member.box).element_count(); ++i) {
      expected[member.offset + i] = 1;
    }
  }
  RC_ASSERT(covered == expected);
}

}  // namespace
}  // namespace sealpoint::test
