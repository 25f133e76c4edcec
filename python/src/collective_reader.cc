// SPDX-License-Identifier: Apache-2.0
//
// Loads of many ranks, over a communicator of Python.
#include "sealpoint/collective_reader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>

#include "python/src/checkpoint_handle.h"
#include "python/src/communicator.h"
#include "python/src/contract.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/slots.h"
#include "python/src/values.h"
#include "python/src/watch.h"

namespace sealpoint::python {
namespace {

class ReaderHandle {
 public:
  ReaderHandle(nb::object communicator, nb::handle path, std::uint64_t memory_budget_bytes)
      : options_{.check_files = true, .memory_budget_bytes = memory_budget_bytes} {
    auto parts = std::make_shared<Parts>();
    parts->communicator = std::make_unique<PythonCommunicator>(std::move(communicator));
    const std::string where = PathOf(path);
    Watch watch{nb::none(), parts->communicator->InterruptedBySignal()};
    parts->reader = Value(
        watch.Run([&] { return CollectiveReader::Open(*parts->communicator, where, options_); }));
    parts_ = std::move(parts);
  }

  ~ReaderHandle() {
    const GilRelease released;  // closes files
    parts_.reset();
  }
  ReaderHandle(const ReaderHandle&) = delete;
  ReaderHandle& operator=(const ReaderHandle&) = delete;

  // The same open checkpoint, for what one rank does alone.
  std::unique_ptr<CheckpointHandle> Checkpoint() const {
    return std::make_unique<CheckpointHandle>(
        std::shared_ptr<const sealpoint::Checkpoint>(parts_, &parts_->reader->checkpoint()),
        options_);
  }

  // Those of the slots whose stored tensor has another dtype or shape.
  nb::list Differing(const Slots& slots) const {
    nb::list differing;
    for (const nb::handle item : slots) {
      const auto& slot = nb::cast<const Slot&>(item);
      const auto stored = parts_->reader->checkpoint().FindTensor(slot.name);
      if (stored && (stored->dtype != slot.dtype || stored->shape != slot.shape)) {
        differing.append(item);
      }
    }
    return differing;
  }

  nb::bytes ReadObject(const std::string& name) const {
    Watch watch{nb::none(), parts_->communicator->InterruptedBySignal()};
    return BytesOf(Value(watch.Run([&] { return parts_->reader->ReadObject(name); })));
  }

  CollectiveLoadReport Load(const Slots& slots, const LoadContract& contract,
                            const std::optional<std::string>& convert, int threads,
                            std::uint64_t memory_budget_bytes, bool share_chunks,
                            nb::handle progress, bool verify_arrival) const {
    const ReadRequest request = RequestOf(slots, RoundingOf(convert));
    Watch watch(progress, parts_->communicator->InterruptedBySignal());
    const CollectiveLoadOptions options{.memory_budget_bytes = memory_budget_bytes,
                                        .threads = threads,
                                        .share_chunks = share_chunks,
                                        .verify_arrival = verify_arrival,
                                        .on_progress = watch.OnPhase()};
    return Value(watch.Run([&] { return parts_->reader->Load(request, contract, options); }));
  }

 private:
  struct Parts {
    std::unique_ptr<PythonCommunicator> communicator;
    std::unique_ptr<CollectiveReader> reader;
  };

  // The request says what it takes for stored: dtype and shape are compared under the contract.
  ReadRequest RequestOf(const Slots& slots, std::optional<Rounding> rounding) const {
    ReadRequest request;
    const sealpoint::Checkpoint& checkpoint = parts_->reader->checkpoint();
    request.items.reserve(slots.size());
    for (const nb::handle item : slots) {
      const auto& slot = nb::cast<const Slot&>(item);
      ReadItem read{.tensor = slot.name,
                    .region = slot.region,
                    .destination = slot.view.value_or(MutableMemoryView{}),
                    .dtype = slot.dtype,
                    .shape = slot.shape};
      if (rounding) {
        const auto stored = checkpoint.FindTensor(read.tensor);
        if (stored && stored->dtype != slot.dtype) {
          read.convert = Conversion{.to = slot.dtype, .rounding = *rounding};
          read.dtype.reset();
        }
      }
      request.items.push_back(std::move(read));
    }
    return request;
  }

  const OpenOptions options_;
  std::shared_ptr<Parts> parts_;
};

}  // namespace

void BindCollectiveReader(nb::module_& m) {
  nb::class_<CollectiveLoadReport>(
      m, "CollectiveLoadReport",
      "Traffic of a collective load on this rank, and the findings of the contract.")
      .def_prop_ro("plan", [](const CollectiveLoadReport& self) { return self.plan; })
      .def_prop_ro("findings",
                   [](const CollectiveLoadReport& self) { return FindingsOf(self.findings); })
      .def_ro("bytes_read", &CollectiveLoadReport::bytes_read)
      .def_ro("bytes_received", &CollectiveLoadReport::bytes_received)
      .def_ro("all_bytes_read", &CollectiveLoadReport::all_bytes_read)
      .def_ro("all_bytes_requested", &CollectiveLoadReport::all_bytes_requested);
  nb::class_<ReaderHandle>(m, "CollectiveReader",
                           "A checkpoint opened by all ranks for collective reads.")
      .def(nb::init<nb::object, nb::handle, std::uint64_t>(), nb::arg("communicator"),
           nb::arg("path"), nb::arg("memory_budget_bytes"))
      .def("checkpoint", &ReaderHandle::Checkpoint)
      .def("differing", &ReaderHandle::Differing, nb::arg("slots"),
           nb::sig("def differing(self, slots: list[Slot]) -> list[Slot]"),
           "Slots whose stored tensor has another dtype or shape.")
      .def("read_object", &ReaderHandle::ReadObject, nb::arg("name"))
      .def("load", &ReaderHandle::Load, nb::arg("slots"), nb::arg("contract"),
           nb::arg("convert").none(), nb::arg("threads"), nb::arg("memory_budget_bytes"),
           nb::arg("share_chunks"), nb::arg("progress").none(), nb::arg("verify_arrival") = false);
}

}  // namespace sealpoint::python
