// SPDX-License-Identifier: Apache-2.0
// Trains a small character language model on the text files of a directory, on all ranks, and saves
// and resumes checkpoints.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpointing.h"
#include "corpus.h"
#include "cuda_compute.h"
#include "fingerprint.h"
#include "options.h"
#include "ranks.h"
#include "saves.h"
#include "trainer.h"

namespace char_lm {
namespace {

bool WriteState(std::span<const float> state, const std::string& path) {
  const auto bytes = std::as_bytes(state);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return false;
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && written;
}

void RunSteps(const Options& options, bool speaks, Trainer& trainer, Checkpointing& checkpoints) {
  Saves saves(options.checkpoints, speaks, trainer, checkpoints);
  double loss_sum = 0.0;
  std::uint64_t loss_count = 0;
  while (trainer.step() < options.steps) {
    loss_sum += static_cast<double>(trainer.Step());
    ++loss_count;
    if (speaks && trainer.step() % options.report_every == 0) {
      const auto hold = checkpoints.progress().Hold();
      std::printf("step %4llu  mean loss %.6f\n", static_cast<unsigned long long>(trainer.step()),
                  loss_sum / static_cast<double>(loss_count));
      loss_sum = 0.0;
      loss_count = 0;
    }
    saves.AfterStep();
  }
  saves.WaitForAll();
  saves.PrintStandstill();
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "train_char_lm: %s\n", why.c_str());
  return 1;
}

// With both axes, in the order that the user gave; an axis that was left out has one rank.
sealpoint::Result<sealpoint::Mesh> MakeMesh(const std::string& text, std::size_t ranks) {
  auto mesh = text.empty() ? sealpoint::Mesh::Create({{"data", static_cast<std::uint32_t>(ranks)}})
                           : sealpoint::Mesh::Parse(text);
  if (!mesh.ok()) {
    return mesh;
  }
  sealpoint::MeshAxes axes = mesh->axes();
  for (const char* const axis : {"data", "tensor"}) {
    if (!mesh->Find(axis)) {
      axes.emplace_back(axis, 1);
    }
  }
  if (axes.size() != 2 || static_cast<std::size_t>(mesh->size()) != ranks) {
    return sealpoint::Status(sealpoint::Code::kInvalidArgument,
                             "the mesh " + text + " is not one of \"data\" and \"tensor\" with " +
                                 std::to_string(ranks) + " ranks");
  }
  return sealpoint::Mesh::Create(std::move(axes));
}

void PrintTraining(const Trainer& trainer, const Corpus& corpus) {
  std::string mesh;
  for (const auto& [axis, size] : trainer.mesh().axes()) {
    mesh += (mesh.empty() ? "" : " x ") + axis + " " + std::to_string(size);
  }
  std::printf("%s: %zu parameters; text: %zu files, %zu characters, %zu different\n", mesh.c_str(),
              trainer.parameter_count(), corpus.file_count, corpus.tokens.size(),
              corpus.vocabulary.size());
  if (const int device = trainer.device(); device != sealpoint::kHostDevice) {
    std::printf("rank 0 computes on CUDA device %d\n", device);
  }
}

// Returns an error message, empty on success.
std::string ResumeTraining(const Trainer& trainer, Checkpointing& checkpoints, bool speaks) {
  const auto resumed = checkpoints.Resume();
  if (!resumed.ok()) {
    return "cannot resume: " + resumed.error().ToString();
  }
  const std::uint64_t state = FingerprintState(trainer, speaks);
  if (speaks) {
    PrintState(trainer.step(), state,
               resumed->empty() ? "nothing to resume from" : "resumed from " + NameOf(*resumed));
  }
  return "";
}

// Ranks end together: one that aborted while the others finalize MPI could hang the launcher.
int End(const Options& options, const Trainer& trainer, sealpoint::Communicator& communicator) {
  const std::vector<float> state = trainer.WholeState();
  sealpoint::Status written;
  if (communicator.rank() == 0) {
    PrintState(trainer.step(), Fingerprint(std::as_bytes(std::span(state))), "done");
    if (!options.state_file.empty() && !WriteState(state, options.state_file)) {
      Fail("cannot write " + options.state_file);
      written = sealpoint::Status(sealpoint::Code::kIo, "the final state");
    }
  }
  return sealpoint::AgreeOnStatus(communicator, written).ok() ? 0 : 1;
}

int TrainOn(const Corpus& corpus, const Options& options, GradientExchange& exchange,
            const sealpoint::Mesh& mesh, sealpoint::Communicator& communicator) {
  const bool speaks = exchange.rank() == 0;
  const auto compute = options.cuda ? OnCuda(exchange.rank()) : OnHost();
  if (!compute.ok()) {
    return Fail("--device cuda: " + compute.error().message());
  }
  Trainer trainer(options.training, corpus, exchange, mesh, *compute);
  const auto checkpoints = Checkpointing::Create(options.checkpoints, communicator, trainer);
  if (!checkpoints.ok()) {
    return Fail(checkpoints.error().ToString());
  }
  if (speaks) {
    PrintTraining(trainer, corpus);
  }
  if (options.checkpoints.resume) {
    if (const std::string error = ResumeTraining(trainer, **checkpoints, speaks); !error.empty()) {
      return Fail(error);
    }
  }
  RunSteps(options, speaks, trainer, **checkpoints);
  return End(options, trainer, communicator);
}

int Train(const Options& options, Ranks& ranks) {
  const auto communicator = ranks.MakeCommunicator();
  if (!communicator.ok()) {
    return Fail(communicator.error().ToString());
  }
  const auto mesh = MakeMesh(options.mesh, ranks.exchange().size());
  if (!mesh.ok()) {
    return Fail(mesh.error().ToString());
  }
  std::string error;
  const auto corpus = LoadCorpus(options.corpus_directory, error);
  if (!corpus) {
    return Fail(error);
  }
  if (corpus->tokens.size() <= options.training.model.context) {
    return Fail("the text is too short");
  }
  return TrainOn(*corpus, options, ranks.exchange(), *mesh, **communicator);
}

int Main(int argc, char** argv) {
  const auto ranks = Ranks::Start(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  int status = 0;
  const auto options = ParseOptions(argc, argv, ranks->exchange().rank() == 0, status);
  if (options) {
    status = Train(*options, *ranks);
    if (status != 0) {
      ranks->Abort(status);
    }
  }
  return status;
}

}  // namespace
}  // namespace char_lm

int main(int argc, char** argv) { return char_lm::Main(argc, argv); }
