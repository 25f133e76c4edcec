// SPDX-License-Identifier: Apache-2.0
//
// Saves of many ranks, over a communicator of Python.
#include "sealpoint/saver.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "python/src/attributes.h"
#include "python/src/communicator.h"
#include "python/src/engine.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/one_call.h"
#include "python/src/saver_options.h"
#include "python/src/slots.h"
#include "python/src/tensor_source.h"
#include "python/src/watch.h"

namespace sealpoint::python {
namespace {

constexpr const char* kFrozenGroup = "frozen";

// Rounded up: a deadline of 0 would be refused.
std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

// What one rank saves. Borrows the memory; keeps nothing of Python but the objects' bytes.
class RankState {
 public:
  // Throws what is wrong with the slots, so that a rank learns it before it is in a collective
  // call.
  // `frozen`: names of tensors that go to blobs of their own (SaverOptions::frozen_groups).
  RankState(const Slots& slots, const Encoding& encoding, const std::set<std::string>& frozen) {
    views_.reserve(slots.size());
    for (const nb::handle item : slots) {
      const auto& slot = nb::cast<const Slot&>(item);
      TensorSpec spec{.name = slot.name,
                      .dtype = slot.dtype,
                      .shape = slot.shape,
                      .chunk_size_bytes = encoding.chunk_size_bytes,
                      .codec = encoding.codec,
                      .codec_level = encoding.codec_level};
      if (frozen.contains(slot.name)) spec.group = kFrozenGroup;
      static_cast<void>(
          Value(declaration_.Add({.tensor = std::move(spec), .region = slot.region})));
      views_.push_back(slot.view);
    }
    static_cast<void>(Bind());
  }
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  void AddObject(const std::string& name, const std::string& media_type, nb::bytes bytes) {
    Check(declaration_.AddObject({.name = name, .media_type = media_type}));
    objects_.push_back(std::move(bytes));
    sources_.reset();
  }

  // Precondition: there is an object of this name.
  void ReplaceObject(const std::string& name, nb::bytes bytes) {
    objects_[declaration_.FindObject(name).value()] = std::move(bytes);
    sources_.reset();
  }

  // The address of each slot, in 8 bytes; 0 if it has no memory.
  nb::bytes Addresses() const {
    std::vector<const void*> addresses;
    addresses.reserve(views_.size());
    for (const auto& view : views_) addresses.push_back(view ? view->data : nullptr);
    return BytesOf(std::as_bytes(std::span(addresses)));
  }

  // Takes memory of the same form from other addresses, one per slot.
  void Rebind(nb::bytes addresses) {
    const ByteSpan bytes = SpanOf(addresses);
    if (bytes.size() != views_.size() * sizeof(std::byte*)) {
      throw StatusError(Status(Code::kInvalidArgument, "expected one address per slot"));
    }
    for (std::size_t slot = 0; slot < views_.size(); ++slot) {
      if (!views_[slot]) continue;
      std::memcpy(&views_[slot]->data, bytes.data() + slot * sizeof(std::byte*),
                  sizeof(std::byte*));
    }
    sources_.reset();
    static_cast<void>(Bind());
  }

  // The same declaration and objects in other memory, which may have another form: a view per slot,
  // none for a slot without memory.
  std::unique_ptr<RankState> InMemory(std::vector<std::optional<MutableMemoryView>> views) const {
    if (views.size() != views_.size()) {
      throw StatusError(Status(Code::kInvalidArgument, "expected one view per slot"));
    }
    std::unique_ptr<RankState> other(new RankState(declaration_, std::move(views), objects_));
    for (std::size_t slot = 0; slot < views_.size(); ++slot) {
      if (views_[slot] && other->views_[slot]) other->views_[slot]->dtype = views_[slot]->dtype;
    }
    static_cast<void>(other->Bind());
    return other;
  }

  std::string DeclarationDigest() const { return declaration_.ComputeDigest().ToHex(); }

  // Needs the GIL. Valid until this state changes.
  const Sources& Bind() {
    if (sources_) return *sources_;
    Sources sources(declaration_);
    for (std::size_t slot = 0; slot < views_.size(); ++slot) {
      if (views_[slot]) Check(sources.Bind(slot, *views_[slot]));
    }
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      Check(sources.BindObject(declaration_.objects()[i].name, SpanOf(objects_[i])));
    }
    return sources_.emplace(std::move(sources));
  }

 private:
  RankState(Declaration declaration, std::vector<std::optional<MutableMemoryView>> views,
            std::vector<nb::bytes> objects)
      : declaration_(std::move(declaration)),
        views_(std::move(views)),
        objects_(std::move(objects)) {}

  Declaration declaration_;
  std::optional<Sources> sources_;  // absent after a change
  std::vector<std::optional<MutableMemoryView>> views_;
  std::vector<nb::bytes> objects_;
};

// A saver and what it needs. Its calls are made without the GIL, which its communicator takes; made
// and destroyed with it.
struct SaverParts {
  std::shared_ptr<Engine> engine;
  std::unique_ptr<PythonCommunicator> communicator;
  std::unique_ptr<Saver> saver;
  std::atomic<bool> is_busy = false;

  SaverParts() = default;
  ~SaverParts() {
    const GilRelease released;
    saver.reset();
    communicator.reset();
    engine.reset();
  }
  SaverParts(const SaverParts&) = delete;
  SaverParts& operator=(const SaverParts&) = delete;
};

class SaverHandle {
 public:
  SaverHandle(const EngineHandle& engine, nb::object communicator, SaverOptions options) {
    auto parts = std::make_shared<SaverParts>();
    parts->engine = engine.engine;
    parts->communicator = std::make_unique<PythonCommunicator>(std::move(communicator));
    parts->saver = Value(Saver::Create(*parts->engine, *parts->communicator, std::move(options)));
    parts_ = std::move(parts);
  }
  ~SaverHandle() { Close(); }
  SaverHandle(const SaverHandle&) = delete;
  SaverHandle& operator=(const SaverHandle&) = delete;

  // Gives up what is pending, once no thread is in a call. Local: another rank that is in a save
  // learns of it.
  void Close() {
    std::shared_ptr<SaverParts> parts;  // destroyed without the lock
    const nb::ft_lock_guard lock(mutex_);
    std::swap(parts, parts_);
  }

  std::shared_ptr<SaverParts> Get() const {
    const nb::ft_lock_guard lock(mutex_);
    if (!parts_) throw StatusError(Status(Code::kInvalidArgument, "the saver is closed"));
    return parts_;
  }

 private:
  mutable nb::ft_mutex mutex_;  // free where the GIL guards
  std::shared_ptr<SaverParts> parts_;
};

// A background save.
class PendingSaveHandle {
 public:
  explicit PendingSaveHandle(std::unique_ptr<PendingSave> save) : save_(std::move(save)) {}
  ~PendingSaveHandle() {
    const GilRelease released;
    save_.reset();
  }
  PendingSaveHandle(const PendingSaveHandle&) = delete;
  PendingSaveHandle& operator=(const PendingSaveHandle&) = delete;

  // Without the GIL.
  bool WaitFor(double seconds) { return save_->WaitFor(Milliseconds(seconds)); }
  CommitInfo Result() { return Value(save_->Wait()); }
  void Cancel() { save_->Cancel(); }

 private:
  std::unique_ptr<PendingSave> save_;
};

std::chrono::milliseconds DeadlineOf(std::optional<double> seconds) {
  if (!seconds) return kForever;
  if (*seconds <= 0) {
    throw StatusError(Status(Code::kInvalidArgument, "deadline is " + std::to_string(*seconds) +
                                                         " s, expected more than 0, or None"));
  }
  return Milliseconds(*seconds);
}

// Local, without the GIL.
bool WaitForPromotions(const SaverHandle& handle, double seconds) {
  const auto parts = handle.Get();
  const GilRelease released;
  return parts->saver->WaitForPromotions(Milliseconds(seconds));
}

// [(final directory, its error or None)]
nb::list TakePromotions(const SaverHandle& handle) {
  nb::list taken;
  for (const Promotion& promotion : handle.Get()->saver->TakePromotions()) {
    nb::object error = promotion.status.ok() ? nb::none() : ErrorOf(promotion.status);
    taken.append(nb::make_tuple(Text(promotion.directory), std::move(error)));
  }
  return taken;
}

// (names of what was promoted, [(final directory, why it was passed over)])
nb::tuple ResumeTogether(nb::object communicator, nb::handle local, nb::handle final,
                         int keep_local, std::optional<double> deadline) {
  PythonCommunicator ranks(std::move(communicator));
  const std::string from = PathOf(local);
  const std::string to = PathOf(final);
  const ResumePromotionsOptions options{.keep_local = keep_local, .deadline = DeadlineOf(deadline)};
  Watch watch{nb::none(), ranks.InterruptedBySignal()};
  const ResumedPromotions resumed = Value(watch.Run(
      [&] { return ResumePromotions(ranks, {.local = from, .final_series = to}, options); }));
  nb::list promoted;
  for (const std::string& name : resumed.promoted) promoted.append(Text(name));
  nb::list skipped;
  for (const Promotion& promotion : resumed.skipped) {
    skipped.append(nb::make_tuple(Text(promotion.directory), ErrorOf(promotion.status)));
  }
  return nb::make_tuple(promoted, skipped);
}

// What (saver.*function)(…) returns.
// `base`: directory, and the state that the base has.
using Base = std::optional<std::pair<std::string, RankState*>>;

template <typename Function>
auto RunSave(const SaverHandle& handle, const SaveTarget& target, RankState& state,
             SaveOptions options, const Base& base, Function function) {
  const auto parts = handle.Get();
  const OneCall turn(parts->is_busy, "the saver");
  const Sources& sources = state.Bind();
  if (base) options.base = SaveBase{.directory = base->first, .sources = &base->second->Bind()};
  Watch watch{nb::none(), parts->communicator->InterruptedBySignal()};
  return Value(watch.Run([&] { return (*parts->saver.*function)(target, options, sources); }));
}

CommitInfo SaveTogether(const SaverHandle& handle, const SaveTarget& target, RankState& state,
                        const SaveOptions& options, const Base& base) {
  return RunSave(handle, target, state, options, base, &Saver::Save);
}

std::unique_ptr<PendingSaveHandle> SaveTogetherAsync(const SaverHandle& handle,
                                                     const SaveTarget& target, RankState& state,
                                                     const SaveOptions& options, const Base& base) {
  return std::make_unique<PendingSaveHandle>(
      RunSave(handle, target, state, options, base, &Saver::SaveAsync));
}

// Folder, series, and the series of the folder's record.
std::tuple<std::string, std::string, std::optional<std::string>> FindCopies(nb::handle local,
                                                                            nb::handle final) {
  const std::string from = PathOf(local);
  const std::string to = PathOf(final);
  const GilRelease released;
  StagedCopies found = Value(FindStagedCopies({.local = from, .final_series = to}));
  return {found.folder, found.series, found.record};
}

using Fields = nb::typed<nb::dict, nb::str, nb::any>;

// A field of SaverOptions in Python: a duration in seconds, or None for kForever.
template <typename T>
void Take(nb::handle given, T& field) {
  if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    field = given.is_none() ? kForever : Milliseconds(nb::cast<double>(given));
  } else {
    field = nb::cast<T>(given);
  }
}

template <typename T>
nb::object Out(const T& field) {
  if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    return nb::cast(std::chrono::duration<double>(field).count());
  } else {
    return nb::cast(field);
  }
}

void MakeSaver(SaverHandle* self, const EngineHandle& engine, nb::object communicator,
               const Fields& given) {
  SaverOptions options{.find_replicas = true, .frozen_groups = {kFrozenGroup}};
  ForEachSaverOption(options, [&](const char* name, auto& field) { Take(given[name], field); });
  options.promote_deadline = options.background_deadline;
  new (self) SaverHandle(engine, std::move(communicator), std::move(options));
}

Fields SaverDefaults() {
  Fields defaults;
  const SaverOptions options;
  ForEachSaverOption(options,
                     [&](const char* name, const auto& field) { defaults[name] = Out(field); });
  return defaults;
}

void MakeTarget(SaveTarget* self, nb::handle path, bool is_series, const Parent& parent,
                nb::handle staged) {
  SaveTarget target =
      is_series ? SaveTarget::InSeries(PathOf(path))
      : parent  ? SaveTarget::Directory(PathOf(path), *ParentOf(parent), std::get<2>(*parent))
                : SaveTarget::Directory(PathOf(path));
  new (self) SaveTarget(staged.is_none() ? std::move(target)
                                         : SaveTarget::Staged(PathOf(staged), std::move(target)));
}

void BindRankState(nb::module_& m) {
  nb::class_<RankState>(m, "RankState", "The part of a state held by one rank, and its memory.")
      .def(nb::init<const Slots&, const Encoding&, const std::set<std::string>&>(),
           nb::arg("slots"), nb::arg("encoding"), nb::arg("frozen"))
      .def("add_object", &RankState::AddObject, nb::arg("name"), nb::arg("media_type"),
           nb::arg("bytes"))
      .def("replace_object", &RankState::ReplaceObject, nb::arg("name"), nb::arg("bytes"))
      .def("addresses", &RankState::Addresses, "Address of each slot, in 8 bytes.")
      .def("rebind", &RankState::Rebind, nb::arg("addresses"), "Replaces the address of each slot.")
      .def("in_memory", &RankState::InMemory, nb::arg("views"),
           nb::sig("def in_memory(self, views: list[MemoryView | None]) -> RankState"),
           "The same declaration and objects in other memory: a view per slot, or None.")
      .def("declaration_digest", &RankState::DeclarationDigest,
           "Digest of the declaration (names, dtypes, shapes, regions), 32 hexadecimal digits.");
}

}  // namespace

void BindSaver(nb::module_& m) {
  BindRankState(m);
  nb::class_<Encoding>(m, "Encoding", "How tensors are stored.")
      .def(
          "__init__",
          [](Encoding* self, const std::string& codec, int codec_level,
             std::uint64_t chunk_size_bytes) {
            new (self) Encoding{CodecOf(codec), codec_level, chunk_size_bytes};
          },
          nb::arg("codec"), nb::arg("codec_level"), nb::arg("chunk_size_bytes"));
  nb::class_<SaveTarget>(m, "SaveTarget", "Where a save goes.")
      .def("__init__", MakeTarget, nb::arg("path"), nb::arg("series"), nb::arg("parent").none(),
           nb::arg("staged").none() = nb::none());
  nb::class_<SaveOptions>(m, "SaveOptions", "Options of one save.")
      .def(
          "__init__",
          [](SaveOptions* self, std::optional<std::uint64_t> step, ProvenanceList provenance,
             bool allow_empty, bool allow_fallback, MeshAxes mesh,
             const std::optional<std::string>& declarations, const AttributesDict& attributes) {
            new (self) SaveOptions{.step = step.value_or(kNoStep),
                                   .mesh = std::move(mesh),
                                   .provenance = std::move(provenance),
                                   .attributes = AttributesOf(attributes),
                                   .allow_empty = allow_empty,
                                   .allow_fallback = allow_fallback};
            if (declarations) self->declarations = IdOf<Digest>(declarations);
          },
          nb::kw_only(), nb::arg("step").none(), nb::arg("provenance"), nb::arg("allow_empty"),
          nb::arg("allow_fallback"), nb::arg("mesh") = MeshAxes{},
          nb::arg("declarations").none() = nb::none(),
          nb::arg("attributes") = AttributesDict(nb::dict()),
          "`declarations`: 32 hexadecimal digits.");
  nb::class_<PendingSaveHandle>(m, "PendingSave", "A background save.")
      .def("wait_for", &PendingSaveHandle::WaitFor, nb::arg("seconds"),
           nb::call_guard<GilRelease>(),
           "Waits for the end of the save, and returns whether it has ended. Thread-safe.")
      .def("result", &PendingSaveHandle::Result, nb::call_guard<GilRelease>(),
           "Returns the outcome. If the save has not ended, all ranks must call it together.")
      .def("cancel", &PendingSaveHandle::Cancel, nb::call_guard<GilRelease>(),
           "Requests that the save fails with CancelledError on all ranks, if it is not too late.");
  nb::class_<SaverHandle>(
      m, "Saver", "Saves by all ranks of a communicator. All ranks call it in the same order.")
      .def("__init__", MakeSaver, nb::arg("engine"), nb::arg("communicator"), nb::arg("options"),
           "`options`: fields of SaverOptions (python/src/saver_options.h).")
      .def("save", SaveTogether, nb::arg("target"), nb::arg("state"), nb::arg("options"),
           nb::arg("base").none() = nb::none(),
           "`base`: directory of a checkpoint, and a state of the same slots with its data. Stores "
           "the elements that differ.")
      .def("save_async", SaveTogetherAsync, nb::arg("target"), nb::arg("state"), nb::arg("options"),
           nb::arg("base").none() = nb::none(), "`base`: as for save.")
      .def(
          "wait_for_promotions", WaitForPromotions, nb::arg("seconds"),
          "Waits for the promotions of this rank, and returns whether all have ended. Thread-safe.")
      .def("take_promotions", TakePromotions,
           nb::sig("def take_promotions(self) -> list[tuple[str, BaseException | None]]"),
           "New outcomes of this rank's promotions: (final directory, error or None).")
      .def("close", &SaverHandle::Close, "Cancels pending saves. Later calls fail.");
  m.def("saver_defaults", SaverDefaults, "Default values of the saver's options.");
  m.def("find_staged_copies", FindCopies, nb::arg("local"), nb::arg("final"),
        nb::sig("def find_staged_copies(local: object, final: object) -> tuple[str, str, str | "
                "None]"),
        "Directory of a series' copies on local storage, the resolved path of the series, and the "
        "series recorded in that directory.");
  m.def("resume_promotions", ResumeTogether, nb::arg("communicator"), nb::arg("local"),
        nb::arg("final"), nb::kw_only(), nb::arg("keep_local"), nb::arg("deadline").none(),
        nb::sig("def resume_promotions(communicator: object, local: object, final: object, *, "
                "keep_local: int, deadline: float | None) -> "
                "tuple[list[str], list[tuple[str, BaseException]]]"),
        "Promotes local checkpoints of an earlier job. Collective.");
}

}  // namespace sealpoint::python
