// SPDX-License-Identifier: Apache-2.0
#include "python/src/read.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/checkpoint_handle.h"
#include "python/src/contract.h"
#include "python/src/gil.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "python/src/watch.h"

namespace sealpoint::python {
namespace {

// Payload that is read in less than a moment, whatever the disk.
constexpr std::uint64_t kShortReadMaxBytes = 8 * kMiB;

std::vector<std::uint64_t> Numbers(nb::handle tuple) {
  return nb::cast<std::vector<std::uint64_t>>(tuple);
}

bool IsEmpty(const Shape& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// Makes the request of a plan or a read, and keeps the destinations in place while it lives.
class RequestMaker {
 public:
  RequestMaker(const Checkpoint& checkpoint, std::optional<Rounding> rounding)
      : checkpoint_(checkpoint), rounding_(rounding), arrays_(ArrayReader::Access::kWrite) {}

  // A dict {name: array}, or a sequence of (name, offset or None, extent or None, kept or None,
  // array or None); see Tensor in _checkpoint.py. None instead of an array: memory for a plan.
  ReadRequest Make(nb::handle wanted) {
    ReadRequest request;
    if (PyDict_Check(wanted.ptr())) {
      request.items.reserve(nb::len(wanted));
      for (const auto& [name, array] : nb::borrow<nb::dict>(wanted)) {
        Add(request, NameOf(name, "tensor's name"), std::nullopt, {}, array);
      }
      return request;
    }
    for (const nb::handle item : wanted) {
      const auto part = nb::borrow<nb::tuple>(item);
      std::optional<Box> box;
      std::vector<bool> is_kept;
      if (!part[1].is_none()) box = Box{.offset = Numbers(part[1]), .extent = Numbers(part[2])};
      if (!part[3].is_none()) is_kept = nb::cast<std::vector<bool>>(part[3]);
      Add(request, NameOf(part[0], "tensor's name"), std::move(box), std::move(is_kept), part[4]);
    }
    return request;
  }

 private:
  void Add(ReadRequest& request, std::string name, std::optional<Box> box,
           std::vector<bool> is_kept, nb::handle array) {
    ReadItem item{.tensor = std::move(name)};
    const std::optional<TensorInfo> stored = checkpoint_.FindTensor(item.tensor);
    const Shape& extent = box ? box->extent : stored ? stored->shape : kNoShape;
    is_kept.resize(extent.size(), true);
    if (array.is_none()) {
      item.destination = MutableMemoryView::PlanOnly();
    } else {
      SetDestination(item, stored, extent, is_kept, array);
    }
    if (box && IsEmpty(box->extent)) {
      // No region has no element: of an empty tensor this is all, of others nothing.
      if (!stored || !IsEmpty(stored->shape)) return;
      box.reset();
    }
    if (box) item.region = Region::Of(*std::move(box));
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

  inline static const Shape kNoShape;

  const Checkpoint& checkpoint_;
  const std::optional<Rounding> rounding_;
  ArrayReader arrays_;
};

std::tuple<PlanSummary, std::string, Findings> Plan(CheckpointHandle& handle, nb::handle wanted,
                                                    const ContractWords& contract) {
  const auto checkpoint = handle.Get();
  RequestMaker maker(*checkpoint, std::nullopt);
  const ReadRequest request = maker.Make(wanted);
  const LoadContract rules = ContractOf(contract);
  const GilRelease released;
  const ReadPlan plan = Value(checkpoint->Plan(request, rules));
  return {plan.Summary(), plan.Explain(), FindingsOf(plan.findings())};
}

LoadReport Read(CheckpointHandle& handle, nb::handle wanted, const ContractWords& contract,
                const std::optional<std::string>& convert, int threads, bool isolate,
                nb::handle progress) {
  const auto checkpoint = handle.Get();
  RequestMaker maker(*checkpoint, RoundingOf(convert));
  const ReadRequest request = maker.Make(wanted);
  const LoadContract rules = ContractOf(contract);
  Watch watch(progress);
  const ReadPlan plan =
      Value(watch.Run([&] { return checkpoint->Plan(request, rules); }, /*is_long=*/false));
  const ReadOptions options{.threads = threads, .isolate = isolate, .on_phase = watch.OnPhase()};
  return Value(watch.Run([&] { return checkpoint->Read(plan, options); },
                         plan.Summary().bytes_read > kShortReadMaxBytes));
}

}  // namespace

void BindRead(nb::module_& m) {
  m.def("plan", Plan, nb::arg("checkpoint"), nb::arg("wanted"), nb::arg("contract"),
        "Summary, text for people, and findings of a plan.");
  m.def("read", Read, nb::arg("checkpoint"), nb::arg("wanted"), nb::arg("contract"),
        nb::arg("convert").none(), nb::arg("threads"), nb::arg("isolate"),
        nb::arg("progress").none(), "Reads and verifies; see sealpoint.Checkpoint.read.");
}

}  // namespace sealpoint::python
