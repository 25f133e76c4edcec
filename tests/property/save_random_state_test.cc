// SPDX-License-Identifier: Apache-2.0
//
// Random states on random numbers of ranks: what is saved verifies, and comes back whole and by
// random boxes.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sealpoint/saver.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

struct RandomTensor {
  TensorSpec spec;
  Bytes bytes;  // of the whole tensor
  // Regions that tile it, and who holds each (ascending ranks, at least one).
  std::vector<std::pair<Region, std::vector<int>>> parts;
};

int Pick(int low, int high) { return *rc::gen::inRange(low, high + 1); }
std::uint64_t PickSize(std::uint64_t low, std::uint64_t high) {
  return *rc::gen::inRange<std::uint64_t>(low, high + 1);
}

std::vector<int> PickHolders(int size) {
  std::set<int> holders;
  const int count = Pick(1, size);
  while (static_cast<int>(holders.size()) < count) holders.insert(Pick(0, size - 1));
  return {holders.begin(), holders.end()};
}

// Cuts a box in two along a random dimension, again and again, and some of the boxes into runs.
void CutBox(const Box& box, int depth, std::vector<Region>& out) {
  const Region whole = Region::Of(box);
  if (depth == 0 || box.extent.empty()) {
    const std::uint64_t cut = PickSize(0, whole.element_count() - 1);
    if (cut == 0 || Pick(0, 2) != 0) {
      out.push_back(whole);
    } else {
      out.push_back({box, {0, cut}});
      out.push_back({box, {cut, whole.element_count()}});
    }
    return;
  }
  const auto dim = static_cast<std::size_t>(Pick(0, static_cast<int>(box.extent.size()) - 1));
  const std::uint64_t cut = PickSize(0, box.extent[dim] - 1);
  if (cut == 0) return CutBox(box, depth - 1, out);
  Box low = box;
  Box high = box;
  low.extent[dim] = cut;
  high.offset[dim] += cut;
  high.extent[dim] -= cut;
  CutBox(low, depth - 1, out);
  CutBox(high, depth - 1, out);
}

RandomTensor MakeTensor(const std::string& name, int size) {
  RandomTensor tensor;
  const auto dtypes = RegisteredDTypes();
  const DTypeInfo dtype =
      dtypes[static_cast<std::size_t>(Pick(0, static_cast<int>(dtypes.size()) - 1))];
  tensor.spec = {.name = name, .dtype = dtype.dtype};
  const int ndim = Pick(0, 4);
  for (int d = 0; d < ndim; ++d) tensor.spec.shape.push_back(PickSize(1, ndim <= 2 ? 120 : 9));
  tensor.spec.chunk_size_bytes = kChunkSizeMinBytes << Pick(0, 3);
  tensor.spec.codec = static_cast<Codec>(Pick(0, 2));
  tensor.spec.group = std::string(static_cast<std::size_t>(Pick(0, 1)), 'g');
  const Region whole = Region::Whole(tensor.spec.shape);
  tensor.bytes = NoiseBytes(static_cast<std::uint64_t>(Pick(0, 1000)),
                            whole.element_count() * dtype.size_bytes);
  if (Pick(0, 1) == 0) std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{3});
  std::vector<Region> regions;
  CutBox(whole.box, Pick(0, 3), regions);
  for (Region& region : regions) tensor.parts.emplace_back(std::move(region), PickHolders(size));
  return tensor;
}

// What one rank declares and binds; `memory` owns what is bound.
void SaveOnRank(Communicator& comm, Engine& engine, const std::vector<RandomTensor>& tensors,
                std::uint64_t blob_size_max, std::vector<Status>& outcomes) {
  Declaration declaration;
  std::vector<Bytes> memory;
  for (const RandomTensor& tensor : tensors) {
    for (const auto& [region, holders] : tensor.parts) {
      if (std::find(holders.begin(), holders.end(), comm.rank()) == holders.end()) continue;
      declaration
          .Add({.tensor = tensor.spec,
                .region = region,
                .replicas = holders.size() > 1 ? holders : std::vector<int>()})
          .value();
      memory.push_back(ExtractRegion(tensor.bytes, tensor.spec.shape,
                                     DTypeSizeBytes(tensor.spec.dtype), region));
    }
  }
  Sources sources(declaration);
  for (std::size_t slot = 0; slot < memory.size(); ++slot) {
    const Status bound = sources.Bind(slot, MemoryView::Host(memory[slot]));
    if (!bound.ok()) AbortOnBadResultAccess(bound);
  }
  const auto saver =
      Saver::Create(engine, comm,
                    {.blob_size_max_bytes = blob_size_max, .deadline = std::chrono::minutes(1)})
          .value();
  outcomes[static_cast<std::size_t>(comm.rank())] =
      saver->Save(SaveTarget::Directory("ckpt"), {}, sources).status();
}

Region RandomBoxOf(const Shape& shape) {
  Box box;
  for (const std::uint64_t extent : shape) {
    box.offset.push_back(PickSize(0, extent - 1));
    box.extent.push_back(PickSize(1, extent - box.offset.back()));
  }
  return Region::Of(box);
}

RC_GTEST_PROP(SaveProperty, RandomStatesComeBack, ()) {
  const int size = Pick(1, 5);
  std::vector<RandomTensor> tensors;
  const int count = Pick(1, 5);
  for (int i = 0; i < count; ++i) tensors.push_back(MakeTensor("t" + std::to_string(i), size));
  const std::uint64_t blob_size_max = Pick(0, 1) == 0 ? kMiB : 64 * kGiB;

  const auto storage = MemoryStorage();
  std::vector<Status> outcomes(static_cast<std::size_t>(size));
  WithRanks(size, [&](Communicator& comm) {
    const auto engine = SmallEngine(storage, 4, 8 * kKiB);
    SaveOnRank(comm, *engine, tensors, blob_size_max, outcomes);
  });
  for (const Status& outcome : outcomes) RC_ASSERT(outcome.ToString() == "Ok");
  RC_ASSERT(FindDamage(storage, "ckpt") == "");
  const auto checkpoint = OpenFrom(storage, "ckpt");
  for (const RandomTensor& tensor : tensors) {
    const std::uint32_t element_size = DTypeSizeBytes(tensor.spec.dtype);
    RC_ASSERT(LoadWhole(*checkpoint, tensor.spec.name) == tensor.bytes);
    const Region box = RandomBoxOf(tensor.spec.shape);
    RC_ASSERT(LoadRegion(*checkpoint, tensor.spec.name, box) ==
              ExtractRegion(tensor.bytes, tensor.spec.shape, element_size, box));
  }
}

}  // namespace
}  // namespace sealpoint::testing
