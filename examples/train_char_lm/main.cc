// SPDX-License-Identifier: Apache-2.0
// Trains a small character language model on the text files of a directory, on all ranks of MPI.
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include <CLI/CLI.hpp>

#include "corpus.h"
#include "fingerprint.h"
#include "mpi_exchange.h"
#include "trainer.h"

namespace {

struct Options {
  std::string corpus_directory = "/usr/share/common-licenses";
  std::string parameters_file;
  std::uint64_t steps = 60;
  std::uint64_t report_every = 10;
  char_lm::TrainingArguments training;
};

void Declare(CLI::App& app, Options& options) {
  app.add_option("--corpus", options.corpus_directory, "directory of the text to train on")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "train until this many steps are done")
      ->capture_default_str();
  app.add_option("--report-every", options.report_every, "print the loss every N steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.training.seed, "of the initial parameters and the sampling")
      ->capture_default_str();
  app.add_option("--learning-rate", options.training.adam.learning_rate, "of Adam")
      ->capture_default_str();
  app.add_option("--parameters-out", options.parameters_file,
                 "write the final parameters to this file, as raw little-endian floats");
}

bool WriteParameters(std::span<const float> parameters, const std::string& path) {
  const auto bytes = std::as_bytes(parameters);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return false;
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && written;
}

int Train(const Options& options, char_lm::GradientExchange& exchange) {
  std::string error;
  const auto corpus = char_lm::LoadCorpus(options.corpus_directory, error);
  if (!corpus || corpus->tokens.size() <= options.training.model.context) {
    std::fprintf(stderr, "%s\n", corpus ? "the corpus is too short" : error.c_str());
    return 1;
  }
  char_lm::Trainer trainer(options.training, *corpus, exchange);
  const bool speaks = exchange.rank() == 0;
  if (speaks) {
    std::printf(
        "corpus: %zu files, %zu characters, %zu different; model: %zu parameters; %zu ranks\n",
        corpus->file_count, corpus->tokens.size(), corpus->vocabulary.size(),
        trainer.parameters().size(), exchange.size());
  }
  const auto begin = std::chrono::steady_clock::now();
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
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (speaks) {
    std::printf(
        "%.1f s; parameters %016llx\n", took.count(),
        static_cast<unsigned long long>(char_lm::Fingerprint(std::as_bytes(trainer.parameters()))));
  }
  if (speaks && !options.parameters_file.empty() &&
      !WriteParameters(trainer.parameters(), options.parameters_file)) {
    std::fprintf(stderr, "cannot write %s\n", options.parameters_file.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a small character language model on MPI ranks.");
  Declare(app, options);
  CLI11_PARSE(app, argc, argv);

  MPI_Init(&argc, &argv);
  int status = 0;
  {
    char_lm::MpiExchange exchange(MPI_COMM_WORLD);
    status = Train(options, exchange);
  }
  if (status != 0) {
    MPI_Abort(MPI_COMM_WORLD, status);  // the others may be waiting for this rank
  }
  MPI_Finalize();
  return status;
}
