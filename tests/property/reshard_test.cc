// SPDX-License-Identifier: Apache-2.0
//
// What some ranks saved in one layout, other ranks load in another: every element arrives, once
// and equal, and what the plans say is what the storage counted.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <mutex>

#include "sealpoint/collective_reader.h"
#include "sealpoint/saver.h"
#include "tests/property/placement_generators.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/local_tensor.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::testing {
namespace {

using test::AnyIn;

struct Tensor {
  TensorSpec spec;
  Bytes bytes;          // of the whole tensor
  Placement placement;  // on the mesh that saves
  Placement wanted;     // on the mesh that loads
  // The dtype in which it is loaded, and the whole tensor in that.
  DType wanted_dtype{};
  Bytes wanted_bytes{};
};

// Bytes as i32, one by one.
Bytes Widened(const Bytes& bytes) {
  Bytes wide(4 * bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) wide[4 * i] = bytes[i];
  return wide;
}

Tensor AnyTensor(std::size_t number, const Mesh& from, const Mesh& to) {
  Tensor tensor{.spec = {.name = "t" + std::to_string(number),
                         .dtype = AnyIn(0, 1) == 0 ? DType::kF32 : DType::kUInt8,
                         .shape = test::AnyShapeWithEmpties(),
                         .codec = AnyIn(0, 3) == 0 ? Codec::kZstd : Codec::kNone}};
  // Some of several chunks.
  if (!tensor.spec.shape.empty() && AnyIn(0, 1) == 0) tensor.spec.shape.back() *= 50;
  tensor.spec.chunk_size_bytes = kChunkSizeMinBytes;
  const std::uint64_t size = ElementsOf(tensor.spec.shape) * DTypeSizeBytes(tensor.spec.dtype);
  tensor.bytes = NoiseBytes(number, size);
  tensor.placement = test::AnyPlacement(from, tensor.spec.shape);
  tensor.wanted = test::AnyPlacement(to, tensor.spec.shape);
  const bool is_converted = tensor.spec.dtype == DType::kUInt8 && AnyIn(0, 1) == 0;
  tensor.wanted_dtype = is_converted ? DType::kInt32 : tensor.spec.dtype;
  tensor.wanted_bytes = is_converted ? Widened(tensor.bytes) : tensor.bytes;
  return tensor;
}

// What went wrong on some rank; RC_ASSERT works on the property's own thread only.
class Failures {
 public:
  void Add(int rank, const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_ += "rank " + std::to_string(rank) + ": " + what + "\n";
  }
  const std::string& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::string all_;
};

void SaveAll(const std::shared_ptr<Storage>& storage, const Mesh& mesh,
             const std::vector<Tensor>& tensors, Failures& failures) {
  WithRanks(mesh.size(), [&](Communicator& comm) {
    const auto engine = SmallEngine(storage);
    const auto saver = Saver::Create(*engine, comm).value();
    Declaration declaration;
    std::vector<LocalLayout> layouts;
    std::vector<std::vector<std::size_t>> slots;
    for (const Tensor& tensor : tensors) {
      layouts.push_back(
          PlaceTensor(mesh, comm.rank(), tensor.spec.shape, tensor.placement).value());
      slots.push_back(declaration.Add(tensor.spec, layouts.back()).value());
    }
    Sources sources(declaration);
    std::vector<Bytes> memory;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      memory.push_back(LocalTensor(tensors[i].bytes, tensors[i].spec.shape,
                                   DTypeSizeBytes(tensors[i].spec.dtype), layouts[i]));
      const Status bound = sources.Bind(slots[i], layouts[i], MemoryView::Host(memory.back()));
      if (!bound.ok()) failures.Add(comm.rank(), bound.ToString());
    }
    const auto saved = saver->Save(SaveTarget::Directory("ckpt"), {}, sources);
    if (!saved.ok()) failures.Add(comm.rank(), saved.error().ToString());
  });
}

struct LocalRequest {
  ReadRequest request;
  std::vector<Bytes> memory;
  std::vector<Bytes> expected;
};

// Requests of whole local tensors under the wanted rules.
LocalRequest RequestOf(const Mesh& mesh, int rank, const std::vector<Tensor>& tensors) {
  LocalRequest local;
  local.memory.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    const auto layout = PlaceTensor(mesh, rank, tensor.spec.shape, tensor.wanted).value();
    const std::uint32_t element_size = DTypeSizeBytes(tensor.wanted_dtype);
    local.expected.push_back(
        LocalTensor(tensor.wanted_bytes, tensor.spec.shape, element_size, layout));
    local.memory.emplace_back(local.expected.back().size(), std::byte{0xee});
    const std::size_t first = local.request.items.size();
    local.request.Add(tensor.spec.name, layout, MutableMemoryView::Host(local.memory.back()));
    for (std::size_t i = first; i < local.request.items.size(); ++i) {
      local.request.items[i].convert = Conversion{tensor.wanted_dtype};
    }
  }
  return local;
}

void LoadAlone(const std::shared_ptr<Storage>& storage, const Mesh& mesh,
               const std::vector<Tensor>& tensors) {
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const auto counting = std::make_shared<ReadingStorage>(storage);
    const auto checkpoint = OpenFrom(counting, "ckpt");
    LocalRequest local = RequestOf(mesh, rank, tensors);
    const auto plan = checkpoint->Plan(local.request, LoadContract::Partial());
    if (!plan.ok()) RC_FAIL(plan.error().ToString());
    counting->ClearLog();
    const auto report = checkpoint->Read(*plan);
    if (!report.ok()) RC_FAIL(report.error().ToString());
    RC_ASSERT(local.memory == local.expected);
    std::uint64_t counted = 0;
    for (const ReadCall& call : counting->log().reads) counted += call.size;
    RC_ASSERT(counted == plan->Summary().bytes_read);
  }
}

void LoadTogether(const std::shared_ptr<Storage>& storage, const Mesh& mesh,
                  const std::vector<Tensor>& tensors, std::uint64_t budget, Failures& failures) {
  WithRanks(mesh.size(), [&](Communicator& comm) {
    const auto reader = CollectiveReader::Open(comm, "ckpt", {.storage = storage}).value();
    LocalRequest local = RequestOf(mesh, comm.rank(), tensors);
    const CollectiveLoadOptions options{.memory_budget_bytes = budget};
    const auto plan = reader->Plan(local.request, LoadContract::Partial(), options);
    if (!plan.ok()) return failures.Add(comm.rank(), plan.error().ToString());
    const auto report = reader->Load(local.request, LoadContract::Partial(), options);
    if (!report.ok()) return failures.Add(comm.rank(), report.error().ToString());
    if (local.memory != local.expected) failures.Add(comm.rank(), "other bytes");
    if (report->all_bytes_read != report->all_bytes_requested)
      failures.Add(comm.rank(), "read twice");
    const RankLoad& planned = plan->ranks[static_cast<std::size_t>(comm.rank())];
    if (planned.bytes_read != report->bytes_read || plan->bytes_read != report->all_bytes_read) {
      failures.Add(comm.rank(), "other than planned");
    }
  });
}

RC_GTEST_PROP(ReshardProperty, AnyLayoutLoadsIntoAnyOther, ()) {
  const Mesh from = test::AnyMesh(3, 2);
  const Mesh to = test::AnyMesh(3, 2);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < 4; ++i) tensors.push_back(AnyTensor(i, from, to));
  const std::uint64_t budget = AnyIn(0, 1) == 0 ? 12 * kKiB : kMiB;
  const auto storage = MemoryStorage();
  Failures failures;
  SaveAll(storage, from, tensors, failures);
  if (!failures.all().empty()) RC_FAIL(failures.all());
  RC_ASSERT(FindDamage(storage, "ckpt") == "");
  LoadAlone(storage, to, tensors);
  LoadTogether(storage, to, tensors, budget, failures);
  if (!failures.all().empty()) RC_FAIL(failures.all());
}

}  // namespace
}  // namespace sealpoint::testing
