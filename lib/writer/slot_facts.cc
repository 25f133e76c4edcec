// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/slot_facts.h"

#include <algorithm>
#include <string>

#include "lib/base/endian.h"
#include "lib/base/mix.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/tiling_sum.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal {
namespace {

using Hash = SlotFacts::Hash;

Hash HashText(std::string_view text) {
  const Digest digest = ComputeDigest(AsBytes(text));
  return {LoadLe<std::uint64_t>(digest.bytes, 0), LoadLe<std::uint64_t>(digest.bytes, 8)};
}

void Append(Hash& hash, std::uint64_t number) {
  for (std::uint64_t& lane : hash) lane = MixWith(lane, number);
}

Hash HashSpec(const Hash& name, const TensorSpec& tensor) {
  Hash spec = name;
  Append(spec, static_cast<std::uint64_t>(tensor.dtype));
  Append(spec, ElementSize(tensor));
  for (const std::uint64_t extent : tensor.shape) Append(spec, extent);
  Append(spec, tensor.chunk_size_bytes);
  for (const std::string& rule : tensor.placement) {
    for (const std::uint64_t lane : HashText(rule)) Append(spec, lane);
  }
  return spec;
}

// A run consists of 2 * ndim - 1 boxes at most.
std::uint64_t CornerCountOfRuns(const Region& region) {
  const std::size_t ndim = region.box.extent.size();
  return (ndim == 0 ? 1 : 2 * std::uint64_t{ndim} - 1) << ndim;
}

// `is_divided`: among several ranks, so that it is written in runs.
void AddRegion(const Region& region, const Hash& spec, const Shape& shape, bool is_divided,
               SlotFacts& facts, HolderFacts& holders) {
  facts.run = region.run;
  facts.has_first_element =
      region.run.begin == 0 && std::all_of(region.box.offset.begin(), region.box.offset.end(),
                                           [](std::uint64_t offset) { return offset == 0; });
  ++holders.region_count;
  holders.corner_count_max = std::max(
      holders.corner_count_max, is_divided ? CornerCountOfRuns(region) : CornerCountOf(region));
  TilingSum tiling = TilingSum::FromValues(holders.tiling);
  tiling.AddRegion(spec, region);
  // One region has the first element: so the tensor is subtracted once.
  if (facts.has_first_element) tiling.SubtractTensor(spec, shape);
  holders.tiling = tiling.values();
  TilingSum names = TilingSum::FromValues(holders.names);
  names.AddName(spec, region);
  holders.names = names.values();
}

}  // namespace

SlotFacts FactsOf(const HeldTensor& held, HolderFacts& holders) {
  const Hash name = HashText(held.tensor.name);
  const Hash spec = HashSpec(name, held.tensor);
  SlotFacts facts{.chunk_size_bytes = held.tensor.chunk_size_bytes,
                  .element_size = ElementSize(held.tensor),
                  .holders = holders.number,
                  .is_empty = IsEmpty(held.tensor),
                  .name = name,
                  .spec = spec[1]};
  if (!facts.is_empty) {
    AddRegion(HeldRegionOf(held), spec, held.tensor.shape, held.replicas.size() > 1, facts,
              holders);
  }
  return facts;
}

std::uint64_t CornerCountOf(const Region& region) {
  const bool is_box = region.run == Run{0, BoxElementCount(region.box)};
  return is_box ? std::uint64_t{1} << region.box.extent.size() : CornerCountOfRuns(region);
}

Region HeldRegionOf(const HeldTensor& held) {
  return held.region ? *held.region : Region::Whole(held.tensor.shape);
}

SlotFacts::Hash HashObjectName(std::string_view name) {
  Hash hash = HashText(name);
  Append(hash, 1);
  return hash;
}

}  // namespace sealpoint::internal
