// SPDX-License-Identifier: Apache-2.0
#include "checkpointing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/series.h"

namespace char_lm {
namespace {

using sealpoint::Bytes;
using sealpoint::Code;
using sealpoint::Phase;
using sealpoint::PhaseEvent;
using sealpoint::Result;
using sealpoint::Status;

// The slices are a few hundred KiB to a few MiB, so that a damaged chunk is a small part of one.
constexpr std::uint64_t kChunkSizeBytes = sealpoint::kMiB;
// Time that the other ranks may take in one step of a save, such as rank 0 to sync the index.
constexpr std::chrono::seconds kDeadline(60);

constexpr std::array kEveryRanksPhases = {Phase::kPreflight, Phase::kPlan,  Phase::kWriteBlobs,
                                          Phase::kSyncBlobs, Phase::kAgree, Phase::kVerdict};
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

// A tensor of few rows may leave a rank without any.
bool HoldsAny(const ShardedTensor& slice) { return slice.extent.front() > 0; }

sealpoint::Region RegionOf(const ShardedTensor& slice) {
  return sealpoint::Region::Of({.offset = slice.offset, .extent = slice.extent});
}

// Which checkpoint to resume from: rank 0 looks, and sends all that is needed to open it.
struct Found {
  Bytes path;  // empty: none
  Bytes marker;
  Bytes index;
};

Result<Found> FindNewest(const std::string& series_directory) {
  const auto newest = sealpoint::Series(series_directory).Newest();
  if (!newest.ok()) {
    return newest.error().code() == Code::kNotFound ? Result<Found>(Found()) : newest.error();
  }
  const auto opened = sealpoint::Checkpoint::Open(newest->entry.path);
  if (!opened.ok()) {
    return opened.error();
  }
  const sealpoint::ByteSpan path = sealpoint::AsBytes(newest->entry.path);
  const sealpoint::ByteSpan marker = (*opened)->marker_bytes();
  const sealpoint::ByteSpan index = (*opened)->index_bytes();
  return Found{.path = {path.begin(), path.end()},
               .marker = {marker.begin(), marker.end()},
               .index = {index.begin(), index.end()}};
}

Status Broadcast(sealpoint::Communicator& communicator, Found& found) {
  for (Bytes* bytes : {&found.path, &found.marker, &found.index}) {
    if (Status sent = communicator.Broadcast(*bytes, 0); !sent.ok()) {
      return sent;
    }
  }
  return {};
}

Result<std::vector<StateObject>> ReadObjects(const sealpoint::Checkpoint& checkpoint) {
  std::vector<StateObject> objects;
  for (const sealpoint::ObjectInfo& info : checkpoint.objects()) {
    const auto bytes = checkpoint.ReadObject(info.name);
    if (!bytes.ok()) {
      return bytes.error();
    }
    objects.push_back({.name = info.name,
                       .media_type = info.media_type,
                       .bytes = std::string(sealpoint::AsText(*bytes))});
  }
  return objects;
}

// Reads the rows that this rank owns, whoever wrote them. This rank may own no row of a tensor that
// is stored, so what is unexpected is found by counting: all wanted ones are there, and no other.
Status ReadTensors(const sealpoint::Checkpoint& checkpoint,
                   const std::vector<ShardedTensor>& slices) {
  if (checkpoint.tensor_count() != slices.size()) {
    return {Code::kMismatch, "the model has " + std::to_string(slices.size()) +
                                 " tensors, the checkpoint " +
                                 std::to_string(checkpoint.tensor_count())};
  }
  sealpoint::ReadRequest request;
  for (const ShardedTensor& slice : slices) {
    if (!checkpoint.FindTensor(slice.name)) {
      return Status(Code::kMismatch, "the checkpoint lacks a tensor").AtTensor(slice.name);
    }
    if (HoldsAny(slice)) {
      request.items.push_back({.tensor = slice.name,
                               .region = RegionOf(slice),
                               .destination = sealpoint::MemoryView::MutableHost(slice.data),
                               .dtype = sealpoint::DType::kF32,
                               .shape = slice.shape});
    }
  }
  return checkpoint.Load(request, sealpoint::LoadContract::Partial()).status();
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
    : options_(options), communicator_(communicator), trainer_(trainer) {}

Result<std::unique_ptr<Checkpointing>> Checkpointing::Create(const CheckpointOptions& options,
                                                             sealpoint::Communicator& communicator,
                                                             Trainer& trainer) {
  std::unique_ptr<Checkpointing> made(new Checkpointing(options, communicator, trainer));
  if (Status declared = made->Declare(); !declared.ok()) {
    return declared;
  }
  auto engine = sealpoint::Engine::Create({.staging_buffer_size_bytes = sealpoint::kMiB});
  if (!engine.ok()) {
    return engine.error();
  }
  made->engine_ = std::move(*engine);
  auto saver = sealpoint::Saver::Create(
      *made->engine_, communicator,
      {.deadline = kDeadline, .on_phase = [checkpointing = made.get()](const PhaseEvent& event) {
         checkpointing->DieIfDue(event);
       }});
  if (!saver.ok()) {
    return saver.error();
  }
  made->saver_ = std::move(*saver);
  return made;
}

Status Checkpointing::Declare() {
  for (const ShardedTensor& slice : trainer_.Tensors()) {
    if (!HoldsAny(slice)) {
      continue;
    }
    const bool is_moment = slice.name.starts_with("optimizer.");
    const auto slot = declaration_.Add({.tensor = {.name = slice.name,
                                                   .dtype = sealpoint::DType::kF32,
                                                   .shape = slice.shape,
                                                   .chunk_size_bytes = kChunkSizeBytes,
                                                   .group = is_moment ? "optimizer" : ""},
                                        .region = RegionOf(slice)});
    if (!slot.ok()) {
      return slot.error();
    }
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

Result<std::string> Checkpointing::Resume() {
  Found found;
  if (communicator_.rank() == 0) {
    auto newest = FindNewest(options_.series_directory);
    if (!newest.ok()) {
      return newest.error();
    }
    found = std::move(*newest);
  }
  if (Status sent = Broadcast(communicator_, found); !sent.ok()) {
    return sent;
  }
  std::string path(sealpoint::AsText(found.path));
  if (path.empty()) {
    return path;
  }
  const auto checkpoint =
      sealpoint::Checkpoint::OpenFrom(path, std::move(found.marker), std::move(found.index));
  if (!checkpoint.ok()) {
    return checkpoint.error();
  }
  const auto objects = ReadObjects(**checkpoint);
  if (!objects.ok()) {
    return objects.error();
  }
  if (std::string why; !trainer_.RestoreObjects(*objects, why)) {
    return Status(Code::kMismatch, why).AtPath(path);
  }
  if (Status read = ReadTensors(**checkpoint, trainer_.Tensors()); !read.ok()) {
    return read;
  }
  trainer_.FinishRestore();
  return path;
}

bool Checkpointing::IsSaveDue() const {
  return options_.save_every > 0 && trainer_.step() % options_.save_every == 0;
}

Result<sealpoint::CommitInfo> Checkpointing::Save() {
  sealpoint::Sources sources(declaration_);
  // What cannot be bound stays unbound, which Save reports on all ranks.
  for (const ShardedTensor& slice : trainer_.Tensors()) {
    if (HoldsAny(slice)) {
      static_cast<void>(sources.Bind(slice.name, sealpoint::MemoryView::Host(slice.data)));
    }
  }
  const std::vector<StateObject> objects = trainer_.Objects();
  if (communicator_.rank() == 0) {
    for (const StateObject& object : objects) {
      static_cast<void>(sources.BindObject(object.name, sealpoint::AsBytes(object.bytes)));
    }
  }
  return saver_->Save(sealpoint::SaveTarget::InSeries(options_.series_directory),
                      {.step = trainer_.step(),
                       .mesh = {{"data", static_cast<std::uint32_t>(communicator_.size())}},
                       .provenance = {{"program", "train_char_lm"}}},
                      sources);
}

void Checkpointing::DieIfDue(const PhaseEvent& event) const {
  const auto& die = options_.die_at;
  if (!die || die->step != trainer_.step() || die->phase != event.phase) {
    return;
  }
  const auto size = static_cast<std::size_t>(communicator_.size());
  const std::size_t rank = IsRankZeros(event.phase) ? 0 : die->rank.value_or(size - 1);
  if (rank != static_cast<std::size_t>(communicator_.rank())) {
    return;
  }
  // Payload is killed half-way, everything else as it begins.
  const bool is_now =
      event.phase == Phase::kWriteBlobs
          ? event.kind != PhaseEvent::Kind::kBegin && event.bytes_done >= event.bytes_total / 2
          : event.kind == PhaseEvent::Kind::kBegin;
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
