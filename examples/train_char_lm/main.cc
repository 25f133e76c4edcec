// SPDX-License-Identifier: Apache-2.0
// Trains a small character language model on the ranks of MPI, and saves and resumes checkpoints.
#include <mpi.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "../or_abort.h"
#include "checkpoints.h"
#include "sealpoint/communicator.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/phases.h"
#include "sealpoint/placement.h"
#include "sealpoint/s3.h"
#include "sealpoint/status.h"
#include "training.h"

namespace sp = sealpoint;

namespace char_lm {
namespace {

struct Options {
  std::string text = "/usr/share/common-licenses/GPL-3";
  std::string mesh;
  std::uint64_t seed = 1;
  std::uint64_t steps = 60;
  std::uint64_t report_every = 10;
  bool resume = false;
  std::size_t hidden = 384;
  CheckpointOptions checkpoints;
  std::string trace;
  // SIGKILL, to show what a crash leaves behind.
  std::uint64_t die_at = 0;
  std::string die_in;
  int die_rank = 0;
};

void Declare(CLI::App& app, Options& options) {
  CheckpointOptions& checkpoints = options.checkpoints;
  app.add_option("--text", options.text, "file to learn");
  app.add_option("--mesh", options.mesh, "data=N,tensor=M")->required();
  app.add_option("--steps", options.steps, "train until so many steps are done");
  app.add_option("--report-every", options.report_every, "steps between losses; 0: none");
  app.add_option("--seed", options.seed, "of the first parameters and of the samples");
  app.add_option("--hidden", options.hidden, "width of the model");
  app.add_option("--checkpoints", checkpoints.series,
                 "directory or s3:// URL of the series of checkpoints");
  app.add_option("--save-every", checkpoints.save_every, "steps between two saves; 0: none");
  app.add_option("--keep", checkpoints.keep, "newest checkpoints that stay, 2 or more; 0: all");
  app.add_flag("--resume", options.resume, "go on from the newest checkpoint, if there is one");
  app.add_flag("--async", checkpoints.async, "save in the background");
  app.add_option("--trace", options.trace, "existing directory for traces of saves and loads");
  app.add_option("--die-at", options.die_at, "step in whose save a rank is killed");
  app.add_option("--die-in", options.die_in, "phase of this save, such as \"write blobs\"");
  app.add_option("--die-rank", options.die_rank, "which rank");
}

sp::Status ReadText(const Options& options, std::vector<std::uint8_t>& text) {
  std::FILE* const file = std::fopen(options.text.c_str(), "rb");
  if (file == nullptr) return sp::Status(sp::Code::kIo, "cannot be opened").AtPath(options.text);
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text.push_back(static_cast<std::uint8_t>(c));
  const bool is_read = std::ferror(file) == 0;
  if (std::fclose(file) == 0 && is_read && text.size() > kContext) return {};
  return sp::Status(sp::Code::kIo, "cannot be read, or is too short").AtPath(options.text);
}

void DieIfDue(const Options& options, int rank, const sp::PhaseEvent& event) {
  if (event.step != options.die_at || sp::PhaseName(event.phase) != options.die_in) return;
  // Where payload is moved, half-way or when all was handed over; elsewhere as the phase begins.
  const bool moves_payload =
      event.phase == sp::Phase::kWriteBlobs || event.phase == sp::Phase::kSnapshot;
  const bool is_begin = event.kind == sp::PhaseEvent::Kind::kBegin;
  const bool is_half_way = !is_begin && event.bytes_done >= event.bytes_total / 2;
  if (rank != options.die_rank || !(moves_payload ? is_half_way : is_begin)) return;
  std::printf("rank %d dies by SIGKILL in the save of step %lu, phase \"%s\"\n", rank, event.step,
              options.die_in.c_str());
  std::fflush(stdout);
  std::raise(SIGKILL);
}

// All ranks call this. An error may be of this rank alone.
sp::Status Train(Options options, sp::Communicator& comm) {
  const auto mesh = sp::Mesh::Parse(options.mesh);
  if (!mesh.ok()) return mesh.error();
  if (mesh->size() != comm.size() || !mesh->Find("data") || !mesh->Find("tensor")) {
    const std::string expected = ", expected data=N,tensor=M for the number of ranks, ";
    return sp::Status(sp::Code::kInvalidArgument,
                      "the mesh is " + options.mesh + expected + std::to_string(comm.size()));
  }
  std::vector<std::uint8_t> text;
  if (sp::Status read = ReadText(options, text); !read.ok()) return read;
  const int rank = comm.rank();
  std::unique_ptr<sp::Trace> trace;
  if (!options.trace.empty()) {
    const std::string path = options.trace + "/rank-" + std::to_string(rank) + ".json";
    auto created = sp::Trace::Create(path, {.rank = rank, .host = comm.host()});
    if (!created.ok()) return created.error();
    trace = std::move(*created);
  }
  options.checkpoints.on_progress = [&](const sp::PhaseEvent& event) {  // on any thread
    if (trace) trace->OnPhase(event);
    DieIfDue(options, rank, event);
  };
  Training training(options.seed, options.hidden, text, *mesh, comm);
  Checkpoints checkpoints(options.checkpoints, comm, training);
  if (rank == 0) {
    std::printf("%s: %zu parameters, %zu bytes of text\n", options.mesh.c_str(),
                training.parameter_count(), text.size());
  }
  if (options.resume) {
    sp::Status resumed = checkpoints.Resume();
    if (!resumed.ok()) return std::move(resumed).Prefixed("cannot resume");
  }
  for (double losses = 0; training.step() < options.steps;) {
    losses += static_cast<double>(training.Step());
    if (options.report_every != 0 && training.step() % options.report_every == 0) {
      const double mean = losses / static_cast<double>(options.report_every);
      if (rank == 0) std::printf("step %4lu  mean loss %.6f\n", training.step(), mean);
      losses = 0;
    }
    checkpoints.AfterStep();
  }
  checkpoints.Finish();
  checkpoints.PrintState("done");
  return {};
}

}  // namespace
}  // namespace char_lm

int main(int argc, char** argv) {
  char_lm::Options options;
  CLI::App app("Trains a small character language model on all ranks.");
  char_lm::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
#if CHAR_LM_WITH_S3
  static_cast<void>(sp::RegisterS3Storage());  // fails only for a scheme that is none
#endif
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  int threads = 0;  // those of a save call no MPI
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  auto comm = OrAbort(sp::MpiCommunicator::Create(MPI_COMM_WORLD));
  const sp::Status status = char_lm::Train(options, *comm);
  if (!status.ok()) {
    std::fprintf(stderr, "train_char_lm: %s\n", status.ToString().c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);  // others may wait for this rank
  }
  comm.reset();
  MPI_Finalize();
  return 0;
}
