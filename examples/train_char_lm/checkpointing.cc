// SPDX-License-Identifier: Apache-2.0
#include "checkpointing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "sealpoint/series.h"

namespace char_lm {
namespace {

using sealpoint::Bytes;
using sealpoint::Code;
using sealpoint::Phase;
using sealpoint::PhaseEvent;
using sealpoint::Result;
using sealpoint::Status;

// The shards are a few hundred KiB to a few MiB, so that a damaged chunk is a small part of one.
constexpr std::uint64_t kChunkSizeBytes = sealpoint::kMiB;
// Time that the other ranks may take in one step of a save, such as rank 0 to sync the index.
constexpr std::chrono::seconds kDeadline(60);

constexpr std::array kEveryRanksPhases = {Phase::kPreflight,  Phase::kPlan,      Phase::kSnapshot,
                                          Phase::kWriteBlobs, Phase::kSyncBlobs, Phase::kAgree,
                                          Phase::kVerdict};
constexpr std::array kRankZerosPhases = {Phase::kCheckBlobs, Phase::kBuildIndex, Phase::kCheckIndex,
                                         Phase::kWriteIndex, Phase::kPublish};

std::string OptionName(Phase phase) {
  std::string name(sealpoint::PhaseName(phase));
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::vector<Phase> SavePhases() {
  std::vector<Phase> phases(kEveryRanksPhases.begin(), kEveryRanksPhases.end());
  phases.insert(phases.end() - 1, kRankZerosPhases.begin(), kRankZerosPhases.end());
  return phases;
}

bool IsRankZeros(Phase phase) {
  return std::find(kRankZerosPhases.begin(), kRankZerosPhases.end(), phase) !=
         kRankZerosPhases.end();
}

Result<std::vector<StateObject>> ReadObjects(sealpoint::CollectiveReader& reader) {
  std::vector<StateObject> objects;
  for (const sealpoint::ObjectInfo& info : reader.checkpoint().objects()) {
    const auto bytes = reader.ReadObject(info.name);
    if (!bytes.ok()) {
      return bytes.error();
    }
    objects.push_back({.name = info.name,
                       .media_type = info.media_type,
                       .bytes = std::string(sealpoint::AsText(*bytes))});
  }
  return objects;
}

// The local tensor, in memory of the host or of a device.
sealpoint::MutableMemoryView MemoryOf(const LocalTensor& tensor) {
  const std::span<float> elements(tensor.data,
                                  sealpoint::ElementCount(tensor.layout.shape).value());
  return sealpoint::MutableMemoryView::Cuda(elements, tensor.device, tensor.stream);
}

// What this rank wants: its part of each tensor, whoever has saved it.
sealpoint::ReadRequest RequestOf(const std::vector<LocalTensor>& tensors) {
  sealpoint::ReadRequest request;
  for (const LocalTensor& tensor : tensors) {
    const std::size_t first = request.items.size();
    request.Add(tensor.name, tensor.layout, MemoryOf(tensor));
    for (std::size_t i = first; i < request.items.size(); ++i) {
      request.items[i].dtype = sealpoint::DType::kF32;
      request.items[i].shape = tensor.shape;
    }
  }
  return request;
}

}  // namespace

std::optional<Phase> FindSavePhase(std::string_view name) {
  for (const Phase phase : SavePhases()) {
    if (OptionName(phase) == name) {
      return phase;
    }
  }
  return std::nullopt;
}

std::string SavePhaseNames() {
  std::string names;
  for (const Phase phase : SavePhases()) {
    names += (names.empty() ? "" : ", ") + OptionName(phase);
  }
  return names;
}

Checkpointing::Checkpointing(const CheckpointOptions& options,
                             sealpoint::Communicator& communicator, Trainer& trainer)
    : options_(options),
      communicator_(communicator),
      trainer_(trainer),
      tensors_(trainer.Tensors()) {}

Result<std::unique_ptr<Checkpointing>> Checkpointing::Create(const CheckpointOptions& options,
                                                             sealpoint::Communicator& communicator,
                                                             Trainer& trainer) {
  std::unique_ptr<Checkpointing> made(new Checkpointing(options, communicator, trainer));
  if (Status declared = made->Declare(); !declared.ok()) {
    return declared;
  }
  if (Status opened = made->OpenTrace(); !opened.ok()) {
    return opened;
  }
  if (Status ready = made->MakeSaver(); !ready.ok()) {
    return ready;
  }
  return made;
}

Status Checkpointing::OpenTrace() {
  if (options_.trace_directory.empty()) {
    return {};
  }
  std::error_code ignored;  // what is not there is told when the file is made
  std::filesystem::create_directories(options_.trace_directory, ignored);
  const int rank = communicator_.rank();
  auto trace =
      sealpoint::Trace::Create(options_.trace_directory + "/rank-" + std::to_string(rank) + ".json",
                               {.rank = rank, .host = communicator_.host()});
  if (!trace.ok()) {
    return trace.error();
  }
  trace_ = std::move(*trace);
  return {};
}

Status Checkpointing::MakeSaver() {
  auto engine = sealpoint::Engine::Create({.staging_buffer_size_bytes = sealpoint::kMiB});
  if (!engine.ok()) {
    return engine.error();
  }
  engine_ = std::move(*engine);
  auto saver = sealpoint::Saver::Create(
      *engine_, communicator_,
      {.deadline = kDeadline, .on_phase = [this](const PhaseEvent& event) { OnPhase(event); }});
  if (!saver.ok()) {
    return saver.error();
  }
  saver_ = std::move(*saver);
  return {};
}

Status Checkpointing::Declare() {
  for (const LocalTensor& tensor : tensors_) {
    const bool is_moment = tensor.name.starts_with("optimizer.");
    auto slots = declaration_.Add({.name = tensor.name,
                                   .dtype = sealpoint::DType::kF32,
                                   .shape = tensor.shape,
                                   .chunk_size_bytes = kChunkSizeBytes,
                                   .group = is_moment ? "optimizer" : "",
                                   .placement = sealpoint::ToStrings(tensor.placement)},
                                  tensor.layout);
    if (!slots.ok()) {
      return slots.error();
    }
    slots_.push_back(std::move(*slots));
  }
  if (communicator_.rank() == 0) {
    for (const StateObject& object : trainer_.Objects()) {
      Status added = declaration_.AddObject({.name = object.name, .media_type = object.media_type});
      if (!added.ok()) {
        return added;
      }
    }
  }
  return {};
}

// Rank 0 looks, and tells the others.
Result<std::string> Checkpointing::FindNewest() {
  Bytes path;
  if (communicator_.rank() == 0) {
    const auto newest = sealpoint::Series(options_.series_directory).Newest();
    if (!newest.ok() && newest.error().code() != Code::kNotFound) {
      return newest.error();
    }
    if (newest.ok()) {
      const sealpoint::ByteSpan found = sealpoint::AsBytes(newest->entry.path);
      path.assign(found.begin(), found.end());
    }
  }
  if (Status sent = communicator_.Broadcast(path, 0); !sent.ok()) {
    return sent;
  }
  return std::string(sealpoint::AsText(path));
}

Result<std::string> Checkpointing::Resume() {
  auto path = FindNewest();
  if (!path.ok() || path->empty()) {
    return path;
  }
  if (Status restored = Restore(*path); !restored.ok()) {
    return restored;
  }
  return path;
}

Status Checkpointing::Restore(const std::string& path) {
  const auto reader = sealpoint::CollectiveReader::Open(communicator_, path);
  if (!reader.ok()) {
    return reader.error();
  }
  const auto objects = ReadObjects(**reader);
  if (!objects.ok()) {
    return objects.error();
  }
  if (std::string why; !trainer_.RestoreObjects(*objects, why)) {
    return Status(Code::kMismatch, why).AtPath(path);
  }
  // Nothing may be missing, and nothing be left over: not a tensor, and not an element.
  const auto loaded =
      (*reader)->Load(RequestOf(tensors_), {.coverage = sealpoint::OnMismatch::kError},
                      {.on_phase = [this](const PhaseEvent& event) { OnPhase(event); }});
  progress_.Clear();
  if (!loaded.ok()) {
    return loaded.error();
  }
  trainer_.FinishRestore();
  return {};
}

bool Checkpointing::IsSaveDue() const {
  return options_.save_every > 0 && trainer_.step() % options_.save_every == 0;
}

// What cannot be bound stays unbound, which the saver reports on all ranks.
sealpoint::Sources Checkpointing::BindSources(const std::vector<StateObject>& objects) const {
  sealpoint::Sources sources(declaration_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    static_cast<void>(sources.Bind(slots_[i], tensors_[i].layout, MemoryOf(tensors_[i])));
  }
  if (communicator_.rank() == 0) {
    for (const StateObject& object : objects) {
      static_cast<void>(sources.BindObject(object.name, sealpoint::AsBytes(object.bytes)));
    }
  }
  return sources;
}

sealpoint::SaveTarget Checkpointing::Target() const {
  return sealpoint::SaveTarget::InSeries(options_.series_directory);
}

sealpoint::SaveOptions Checkpointing::SaveOptionsNow() const {
  return {.step = trainer_.step(),
          .mesh = trainer_.mesh().axes(),
          .provenance = {{"program", "train_char_lm"}}};
}

Result<sealpoint::CommitInfo> Checkpointing::Save() {
  const std::vector<StateObject> objects = trainer_.Objects();
  auto saved = saver_->Save(Target(), SaveOptionsNow(), BindSources(objects));
  progress_.Clear();
  return saved;
}

Result<std::unique_ptr<sealpoint::PendingSave>> Checkpointing::SaveAsync() {
  const std::vector<StateObject> objects = trainer_.Objects();
  return saver_->SaveAsync(Target(), SaveOptionsNow(), BindSources(objects));
}

void Checkpointing::OnPhase(const PhaseEvent& event) {
  if (communicator_.rank() == 0 && !options_.quiet) {
    progress_.OnPhase(event);
  }
  if (trace_) {
    trace_->OnPhase(event);
  }
  DieIfDue(event);
}

void Checkpointing::DieIfDue(const PhaseEvent& event) const {
  const auto& die = options_.die_at;
  if (!die || die->step != event.step || die->phase != event.phase) {
    return;
  }
  const auto size = static_cast<std::size_t>(communicator_.size());
  const std::size_t rank = IsRankZeros(event.phase) ? 0 : die->rank.value_or(size - 1);
  if (rank != static_cast<std::size_t>(communicator_.rank())) {
    return;
  }
  // Payload is killed half-way, or when it was handed over; everything else as it begins.
  const bool is_half_way =
      event.kind == PhaseEvent::Kind::kEnd ||
      (event.kind == PhaseEvent::Kind::kProgress && event.bytes_done >= event.bytes_total / 2);
  const bool moves_payload = event.phase == Phase::kWriteBlobs || event.phase == Phase::kSnapshot;
  const bool is_now = moves_payload ? is_half_way : event.kind == PhaseEvent::Kind::kBegin;
  if (!is_now) {
    return;
  }
  std::printf("rank %zu dies by SIGKILL in the save of step %llu, phase \"%s\"\n", rank,
              static_cast<unsigned long long>(die->step),
              std::string(sealpoint::PhaseName(event.phase)).c_str());
  std::fflush(stdout);
  std::raise(SIGKILL);
}

}  // namespace char_lm
