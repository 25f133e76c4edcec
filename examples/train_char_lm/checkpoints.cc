// SPDX-License-Identifier: Apache-2.0
#include "checkpoints.h"

#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "sealpoint/open_newest.h"
#include "sealpoint/series.h"

using namespace sealpoint;

namespace char_lm {
namespace {

constexpr char kArguments[] = "training_arguments";  // an object

}  // namespace

// What this rank holds is declared and bound once, since it stays where it is. value() is for what
// fails only if the program is wrong; what is not bound is reported by the saver on all ranks.
Checkpoints::Checkpoints(const CheckpointOptions& options, Communicator& comm, Training& training)
    : options_(options), comm_(comm), training_(training), arguments_(training.arguments()) {
  const std::vector<LocalTensor> tensors = training.tensors();
  std::vector<std::vector<std::size_t>> slots;
  for (const LocalTensor& tensor : tensors) {
    const TensorSpec spec = {
        .name = tensor.name,
        .dtype = DType::kF32,
        .shape = tensor.shape,
        .chunk_size_bytes = kMiB,
        .group = tensor.name.starts_with("optimizer.") ? "optimizer" : "",  // blobs of their own
        .placement = ToStrings(tensor.placement)};
    slots.push_back(declaration_.Add(spec, tensor.layout).value());
  }
  const HeldObject object = {.name = kArguments, .media_type = "application/json"};
  if (comm.rank() == 0) static_cast<void>(declaration_.AddObject(object));
  sources_ = std::make_unique<Sources>(declaration_);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const MemoryView memory = MemoryView::Host(tensors[i].memory);
    static_cast<void>(sources_->Bind(slots[i], tensors[i].layout, memory));
  }
  if (comm.rank() == 0) static_cast<void>(sources_->BindObject(kArguments, AsBytes(arguments_)));
  engine_ = Engine::Create({.staging_buffer_size_bytes = kMiB}).value();
  saver_ = Saver::Create(*engine_, comm, {.on_phase = options.on_phase}).value();
}

Status Checkpoints::Resume() {
  const auto newest = OpenNewest(comm_, options_.series);
  if (!newest.ok()) return newest.error();
  if (newest->reader == nullptr) {
    PrintState("nothing to resume from");
    return {};
  }
  const auto arguments = newest->reader->ReadObject(kArguments);
  if (!arguments.ok()) return arguments.error();
  if (const std::string found(AsText(*arguments)); found != arguments_) {
    const std::string why = "the training is " + found + ", expected " + arguments_;
    return Status(Code::kMismatch, why).AtPath(newest->name);
  }
  ReadRequest request;
  for (const LocalTensor& tensor : training_.tensors()) {
    request.Add(tensor.name, tensor.layout, MutableMemoryView::Host(tensor.memory));
  }
  // Nothing may be missing, and nothing be left over: not a tensor, and not an element.
  const auto loaded = newest->reader->Load(request, {.coverage = OnMismatch::kError},
                                           {.on_phase = options_.on_phase});
  if (!loaded.ok()) return loaded.error();
  training_.ContinueFrom(newest->reader->checkpoint().step());
  PrintState("resumed from " + newest->name);
  return {};
}

void Checkpoints::AfterStep() {
  const std::uint64_t step = training_.step();
  const bool is_due = options_.save_every != 0 && step % options_.save_every == 0;
  Save save{.step = step, .state = is_due ? training_.StateDigest() : "", .pending = nullptr};

  const auto begin = Clock::now();
  // One call carries on all saves, since they are taken one after the other.
  while (!pending_.empty() && pending_.front().pending->Poll() != SaveState::kRunning) {
    Report(pending_.front(), pending_.front().pending->Wait());  // it is over: returns at once
    pending_.pop_front();
  }
  if (is_due) {
    const SaveTarget target = SaveTarget::InSeries(options_.series);
    const SaveOptions options = {.step = step, .mesh = training_.mesh().axes()};
    if (!options_.async) {
      Report(save, saver_->Save(target, options, *sources_));
    } else if (auto begun = saver_->SaveAsync(target, options, *sources_); begun.ok()) {
      save.pending = std::move(*begun);  // the state is copied: training may change it
      pending_.push_back(std::move(save));
    } else {
      Report(save, begun.error());
    }
  }
  blocked_ += Clock::now() - begin;
}

void Checkpoints::Finish() {
  for (const Save& save : pending_) Report(save, save.pending->Wait());
  pending_.clear();
  if (comm_.rank() != 0 || options_.save_every == 0) return;
  const double seconds = std::chrono::duration<double>(blocked_).count();
  std::printf("training stood still for %.3f s for its saves\n", seconds);
}

void Checkpoints::Report(const Save& save, const Result<CommitInfo>& saved) const {
  if (comm_.rank() != 0) return;
  if (saved.ok()) {
    const std::string name = std::filesystem::path(saved->directory).filename();
    std::printf("step %4lu  state %s  saved %s\n", save.step, save.state.c_str(), name.c_str());
    if (options_.keep == 0) return;
    const PruneReport pruned = Series(options_.series).Prune({.keep_last = options_.keep});
    if (pruned.status.ok()) return;
    std::fprintf(stderr, "train_char_lm: pruning failed: %s\n", pruned.status.ToString().c_str());
  } else {
    std::fprintf(stderr, "train_char_lm: save of step %lu failed: %s\n", save.step,
                 saved.error().ToString().c_str());
  }
}

void Checkpoints::PrintState(const std::string& what) const {
  const std::string state = training_.StateDigest();
  if (comm_.rank() != 0) return;
  std::printf("step %4lu  state %s  %s\n", training_.step(), state.c_str(), what.c_str());
}

}  // namespace char_lm
