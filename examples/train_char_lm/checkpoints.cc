// SPDX-License-Identifier: Apache-2.0
#include "checkpoints.h"

#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "../or_abort.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/series.h"

namespace sp = sealpoint;

namespace char_lm {
namespace {

constexpr char kArguments[] = "training_arguments";  // an object

}  // namespace

// What this rank holds is declared and bound once, since it stays where it is. What is wrong with
// it is reported by each save, on all ranks. value() is for what fails only if the program is
// wrong.
Checkpoints::Checkpoints(const CheckpointOptions& options, sp::Communicator& comm,
                         Training& training)
    : options_(options), comm_(comm), training_(training), arguments_(training.arguments()) {
  const std::vector<LocalTensor> tensors = training.tensors();
  for (const LocalTensor& tensor : tensors) {
    const sp::TensorSpec spec = {
        .name = tensor.name,
        .dtype = sp::DType::kF32,
        .shape = tensor.shape,
        .chunk_size_bytes = sp::kMiB,
        .group = tensor.name.starts_with("optimizer.") ? "optimizer" : "",  // blobs of their own
        .placement = sp::ToStrings(tensor.placement)};
    declaration_.Add(spec, tensor.layout).IgnoreError();
  }
  const sp::ObjectSpec object = {.name = kArguments, .media_type = "application/json"};
  if (comm.rank() == 0) declaration_.AddObject(object).IgnoreError();
  sources_ = std::make_unique<sp::Sources>(declaration_);
  for (const LocalTensor& tensor : tensors) {
    sources_->Bind(tensor.name, tensor.layout, sp::MemoryView::Host(tensor.memory)).IgnoreError();
  }
  if (comm.rank() == 0) sources_->BindObject(kArguments, sp::AsBytes(arguments_)).IgnoreError();
  engine_ = OrAbort(sp::Engine::Create({.staging_buffer_size_bytes = sp::kMiB}));
  saver_ = OrAbort(sp::Saver::Create(*engine_, comm, {.on_progress = options.on_progress}));
}

sp::Status Checkpoints::Resume() {
  const auto newest = sp::OpenNewest(comm_, options_.series);
  if (!newest.ok()) return newest.error();
  if (newest->reader == nullptr) {
    PrintState("nothing to resume from");
    return {};
  }
  const auto arguments = newest->reader->ReadObject(kArguments);
  if (!arguments.ok()) return arguments.error();
  if (const std::string found(sp::AsText(*arguments)); found != arguments_) {
    const std::string why = "the training is " + found + ", expected " + arguments_;
    return sp::Status(sp::Code::kMismatch, why).AtPath(newest->name);
  }
  sp::ReadRequest request;
  for (const LocalTensor& tensor : training_.tensors()) {
    request.Add(tensor.name, tensor.layout, sp::MutableMemoryView::Host(tensor.memory));
  }
  // Nothing may be missing, and nothing be left over: not a tensor, and not an element.
  const auto loaded = newest->reader->Load(request, {.coverage = sp::OnMismatch::kError},
                                           {.on_progress = options_.on_progress});
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
  while (!pending_.empty() && pending_.front().pending->Poll() != sp::SaveState::kRunning) {
    Report(pending_.front(), pending_.front().pending->Wait());  // it is over: returns at once
    pending_.pop_front();
  }
  if (is_due) {
    const sp::SaveTarget target = sp::SaveTarget::InSeries(options_.series);
    const sp::SaveOptions options = {.step = step, .mesh = training_.mesh().axes()};
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
  std::printf("saves blocked training for %.3f s\n", seconds);
}

void Checkpoints::Report(const Save& save, const sp::Result<sp::CommitInfo>& saved) const {
  if (comm_.rank() != 0) return;
  if (saved.ok()) {
    const std::string name = std::filesystem::path(saved->directory).filename();
    std::printf("step %4lu  state %s  saved %s\n", save.step, save.state.c_str(), name.c_str());
    if (options_.keep == 0) return;
    const sp::PruneReport pruned = sp::Series(options_.series).Prune({.keep_last = options_.keep});
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
