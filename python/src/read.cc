// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/checkpoint_handle.h"
#include "python/src/contract.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "python/src/watch.h"
#include "sealpoint/mapped_tensor.h"

namespace sealpoint::python {
namespace {

// Payload that is read in less than a moment, whatever the disk.
constexpr std::uint64_t kShortReadMaxBytes = 8 * kMiB;

// The class ReadPart of the module.
struct Part {
  std::string tensor{};
  nb::object out{};                    // None: memory for a plan
  std::optional<Region> box{};         // absent: all of the tensor
  std::vector<bool> is_kept{};         // which dimensions `out` has; empty: all
  std::vector<std::uint64_t> steps{};  // ReadItem::steps
};

void MakePart(Part* self, nb::handle tensor, nb::object out, const Region* box,
              std::optional<std::vector<bool>> kept,
              std::optional<std::vector<std::uint64_t>> steps) {
  new (self) Part{.tensor = NameOf(tensor, "tensor's name"),
                  .out = std::move(out),
                  .box = box == nullptr ? std::nullopt : std::optional(*box),
                  .is_kept = std::move(kept).value_or(std::vector<bool>{}),
                  .steps = std::move(steps).value_or(std::vector<std::uint64_t>{})};
}

// Makes the request of a plan or a read, and keeps the destinations in place while it lives.
class RequestMaker {
 public:
  RequestMaker(const Checkpoint& checkpoint, std::optional<Rounding> rounding)
      : checkpoint_(checkpoint), rounding_(rounding), arrays_(ArrayReader::Access::kWrite) {}

  // A dict {name: array}, or a sequence of parts.
  ReadRequest Make(nb::handle requests) {
    ReadRequest request;
    if (PyDict_Check(requests.ptr())) {
      request.items.reserve(nb::len(requests));
      for (const auto& [name, array] : nb::borrow<nb::dict>(requests)) {
        Add(request, NameOf(name, "tensor's name"), std::nullopt, {}, {}, array);
      }
      return request;
    }
    for (const nb::handle item : requests) {
      const auto& part = nb::cast<const Part&>(item);
      Add(request, part.tensor, part.box, part.steps, part.is_kept, part.out);
    }
    return request;
  }

 private:
  // The extent of a destination: a run of a box is one-dimensional.
  static Shape ExtentOf(const Region& region) {
    if (region == Region::Of(region.box)) return region.box.extent;
    return {region.element_count()};
  }

  void Add(ReadRequest& request, std::string name, std::optional<Region> box,
           std::vector<std::uint64_t> steps, std::vector<bool> is_kept, nb::handle array) {
    ReadItem item{.tensor = std::move(name), .steps = std::move(steps)};
    const std::optional<TensorInfo> stored = checkpoint_.FindTensor(item.tensor);
    Shape extent = box ? ExtentOf(*box) : stored ? stored->shape : Shape();  // of the destination
    for (std::size_t d = 0; d < std::min(extent.size(), item.steps.size()); ++d) {
      const std::uint64_t step = std::max<std::uint64_t>(item.steps[d], 1);  // Plan refuses 0
      extent[d] = extent[d] / step + (extent[d] % step != 0 ? 1 : 0);
    }
    is_kept.resize(extent.size(), true);
    if (array.is_none()) {
      item.destination = MutableMemoryView::PlanOnly();
    } else {
      SetDestination(item, stored, extent, is_kept, array);
    }
    item.region = std::move(box);
    request.items.push_back(std::move(item));
  }

  void SetDestination(ReadItem& item, const std::optional<TensorInfo>& stored, const Shape& extent,
                      const std::vector<bool>& is_kept, nb::handle array) {
    const ArrayMemory memory = arrays_.Read(array, item.tensor);
    if (!stored) {  // The contract says what follows.
      item.destination = ViewOf<MutableMemoryView>(memory, {});
      return;
    }
    const bool converts =
        rounding_ && memory.dtype != DType::kNone && memory.dtype != stored->dtype;
    if (converts) item.convert = Conversion{.to = memory.dtype, .rounding = *rounding_};
    const std::uint32_t size = converts ? memory.element_size : stored->element_size;
    item.destination =
        ViewOf<MutableMemoryView>(memory, FitArray(memory, extent, is_kept, size, item.tensor));
  }

  const Checkpoint& checkpoint_;
  const std::optional<Rounding> rounding_;
  ArrayReader arrays_;
};

std::tuple<PlanSummary, std::string, Findings> Plan(CheckpointHandle& handle, nb::handle requests,
                                                    const LoadContract& contract) {
  const auto checkpoint = handle.Get();
  RequestMaker maker(*checkpoint, std::nullopt);
  const ReadRequest request = maker.Make(requests);
  const GilRelease released;
  const ReadPlan plan = Value(checkpoint->Plan(request, contract));
  return {plan.Summary(), plan.Explain(), FindingsOf(plan.findings())};
}

LoadReport Read(CheckpointHandle& handle, nb::handle requests, const LoadContract& contract,
                const std::optional<std::string>& convert, int threads, bool isolate,
                nb::handle progress, bool holds_base) {
  const auto checkpoint = handle.Get();
  RequestMaker maker(*checkpoint, RoundingOf(convert));
  const ReadRequest request = maker.Make(requests);
  Watch watch(progress);
  const ReadPlan plan =
      Value(watch.Run([&] { return checkpoint->Plan(request, contract); }, /*is_long=*/false));
  const ReadOptions options{.threads = threads,
                            .isolate = isolate,
                            .holds_base = holds_base,
                            .on_progress = watch.OnPhase()};
  return Value(watch.Run([&] { return checkpoint->Read(plan, options); },
                         plan.Summary().bytes_read > kShortReadMaxBytes));
}

using Mapped = std::shared_ptr<const MappedTensor>;

Mapped Map(CheckpointHandle& handle, const std::string& tensor, int threads, bool host_copy) {
  const auto checkpoint = handle.Get();
  const GilRelease released;
  return Value(MapTensor(*checkpoint, tensor, {.threads = threads, .host_copy = host_copy}));
}

Mapped MapShared(CheckpointHandle& handle, const std::string& tensor, int descriptor) {
  const auto checkpoint = handle.Get();
  const GilRelease released;
  return Value(MapSealed(*checkpoint, tensor, descriptor));
}

std::vector<std::tuple<std::uintptr_t, std::size_t>> MemoryOf(const Mapped& mapped) {
  std::vector<std::tuple<std::uintptr_t, std::size_t>> found;
  for (const MappedShard& shard : mapped->shards()) {
    found.emplace_back(reinterpret_cast<std::uintptr_t>(shard.bytes.data()), shard.bytes.size());
  }
  return found;
}

// nanobind holds no pointers to const.
struct MappedHandle {
  Mapped mapped;
};

void BindMapped(nb::module_& m) {
  nb::class_<MappedHandle>(m, "MappedTensor",
                           "Verified, readable memory, valid during the lifetime of this object.")
      .def_prop_ro(
          "shards", [](const MappedHandle& self) { return MemoryOf(self.mapped); },
          "Address and size in bytes of each shard, in stored order.")
      .def_prop_ro(
          "descriptor", [](const MappedHandle& self) { return self.mapped->descriptor(); },
          "The file descriptor of a host copy's sealed memory.");
  m.def(
      "map",
      [](CheckpointHandle& handle, const std::string& tensor, int threads, bool host_copy) {
        return MappedHandle{Map(handle, tensor, threads, host_copy)};
      },
      nb::arg("checkpoint"), nb::arg("tensor"), nb::arg("threads"), nb::arg("host_copy"),
      "See sealpoint.Tensor.map.");
  m.def(
      "map_sealed",
      [](CheckpointHandle& handle, const std::string& tensor, int descriptor) {
        return MappedHandle{MapShared(handle, tensor, descriptor)};
      },
      nb::arg("checkpoint"), nb::arg("tensor"), nb::arg("descriptor"),
      "See sealpoint.Tensor.map_host_copy.");
}

}  // namespace

void BindRead(nb::module_& m) {
  BindMapped(m);
  nb::class_<Part>(m, "ReadPart", "A tensor, a box of it, or a run of a box, and its destination.")
      .def("__init__", MakePart, nb::arg("tensor"), nb::arg("out").none(),
           nb::arg("box") = nb::none(), nb::arg("kept") = nb::none(), nb::arg("steps") = nb::none(),
           nb::sig("def __init__(self, tensor: str, out: object | None, box: Region | None = None, "
                   "kept: collections.abc.Sequence[bool] | None = None, "
                   "steps: collections.abc.Sequence[int] | None = None) -> None"),
           "``out``: destination, or None for a plan; ``kept``: whether ``out`` has each "
           "dimension; ``steps``: of the positions in the box, one per dimension.");
  m.def("plan", Plan, nb::arg("checkpoint"), nb::arg("requests"), nb::arg("contract"),
        "Summary, human-readable text, and findings of a plan.");
  m.def("read", Read, nb::arg("checkpoint"), nb::arg("requests"), nb::arg("contract"),
        nb::arg("convert").none(), nb::arg("threads"), nb::arg("isolate"),
        nb::arg("progress").none(), nb::arg("holds_base") = false,
        "Reads and verifies; see sealpoint.Checkpoint.read.");
}

}  // namespace sealpoint::python
