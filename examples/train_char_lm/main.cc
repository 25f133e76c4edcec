// SPDX-License-Identifier: Apache-2.0
// Trains a small character language model on the text files of a directory, on all ranks of MPI,
// and saves and resumes checkpoints.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "checkpointing.h"
#include "corpus.h"
#include "fingerprint.h"
#include "mpi_exchange.h"
#include "options.h"
#include "sealpoint/mpi_communicator.h"
#include "trainer.h"

namespace char_lm {
namespace {

bool WriteParameters(std::span<const float> parameters, const std::string& path) {
  const auto bytes = std::as_bytes(parameters);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return false;
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && written;
}

// One line about a save, from rank 0. A save that failed does not end the training.
void ReportSave(std::uint64_t step, const sealpoint::Result<sealpoint::CommitInfo>& saved) {
  const auto number = static_cast<unsigned long long>(step);
  if (!saved.ok()) {
    std::printf("step %4llu  save failed: %s\n", number, saved.error().ToString().c_str());
    return;
  }
  const std::string name = saved->directory.substr(saved->directory.rfind('/') + 1);
  const double megabytes = static_cast<double>(saved->total_bytes) / 1e6;
  const double seconds = saved->report.total_seconds();
  std::printf("step %4llu  saved %s  %.1f MB in %.2f s, %.0f MB/s\n", number, name.c_str(),
              megabytes, seconds, megabytes / seconds);
}

void RunSteps(const Options& options, bool speaks, Trainer& trainer, Checkpointing& checkpoints) {
  double loss_sum = 0.0;
  std::uint64_t loss_count = 0;
  while (trainer.step() < options.steps) {
    loss_sum += static_cast<double>(trainer.Step());
    ++loss_count;
    if (speaks && trainer.step() % options.report_every == 0) {
      std::printf("step %4llu  mean loss %.3f\n", static_cast<unsigned long long>(trainer.step()),
                  loss_sum / static_cast<double>(loss_count));
      loss_sum = 0.0;
      loss_count = 0;
    }
    if (checkpoints.IsSaveDue()) {
      const auto saved = checkpoints.Save();
      if (speaks) {
        ReportSave(trainer.step(), saved);
      }
    }
  }
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "train_char_lm: %s\n", why.c_str());
  return 1;
}

int TrainOn(const Corpus& corpus, const Options& options, GradientExchange& exchange,
            sealpoint::Communicator& communicator) {
  const bool speaks = exchange.rank() == 0;
  Trainer trainer(options.training, corpus, exchange);
  const auto checkpoints = Checkpointing::Create(options.checkpoints, communicator, trainer);
  if (!checkpoints.ok()) {
    return Fail(checkpoints.error().ToString());
  }
  if (speaks) {
    std::printf("%zu ranks; %zu parameters; text: %zu files, %zu characters, %zu different\n",
                exchange.size(), trainer.parameters().size(), corpus.file_count,
                corpus.tokens.size(), corpus.vocabulary.size());
  }
  if (options.checkpoints.resume) {
    const auto resumed = (*checkpoints)->Resume();
    if (!resumed.ok()) {
      return Fail("cannot resume: " + resumed.error().ToString());
    }
    if (speaks) {
      std::printf("step %4llu  %s%s\n", static_cast<unsigned long long>(trainer.step()),
                  resumed->empty() ? "nothing to resume from" : "resumed from ",
                  resumed->substr(resumed->rfind('/') + 1).c_str());
    }
  }
  RunSteps(options, speaks, trainer, **checkpoints);
  if (!speaks) {
    return 0;
  }
  std::printf("step %4llu  done; parameters %016llx\n",
              static_cast<unsigned long long>(trainer.step()),
              static_cast<unsigned long long>(Fingerprint(std::as_bytes(trainer.parameters()))));
  if (!options.parameters_file.empty() &&
      !WriteParameters(trainer.parameters(), options.parameters_file)) {
    return Fail("cannot write " + options.parameters_file);
  }
  return 0;
}

int Train(const Options& options) {
  MpiExchange exchange(MPI_COMM_WORLD);
  const auto communicator = sealpoint::MpiCommunicator::Create(MPI_COMM_WORLD);
  if (!communicator.ok()) {
    return Fail(communicator.error().ToString());
  }
  std::string error;
  const auto corpus = LoadCorpus(options.corpus_directory, error);
  if (!corpus) {
    return Fail(error);
  }
  if (corpus->tokens.size() <= options.training.model.context) {
    return Fail("the text is too short");
  }
  return TrainOn(*corpus, options, exchange, **communicator);
}

int Main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = 0;
  const auto options = ParseOptions(argc, argv, rank == 0, status);
  if (options) {
    status = Train(*options);
    if (status != 0) {
      MPI_Abort(MPI_COMM_WORLD, status);  // the others may be waiting for this rank
    }
  }
  MPI_Finalize();
  return status;
}

}  // namespace
}  // namespace char_lm

int main(int argc, char** argv) { return char_lm::Main(argc, argv); }
