// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <iostream>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cuda_compute.h"
#include "kernels.h"

namespace char_lm {
namespace {

constexpr int kUsage = 64;  // EX_USAGE of sysexits.h

// What of the command line is not a value of Options yet.
struct Arguments {
  std::string device = "host";
  std::string die_at;
  std::optional<std::size_t> die_rank;
};

void DeclareTraining(CLI::App& app, Options& options, Arguments& arguments) {
  const CLI::Validator lanes(
      [](const std::string& text) {
        const bool fits = text.find_first_not_of("0123456789") == std::string::npos &&
                          text.size() < 6 && !text.empty() && std::stoul(text) > 0 &&
                          std::stoul(text) % kLanes == 0;
        return fits ? "" : "not a multiple of " + std::to_string(kLanes);
      },
      "MULTIPLE OF " + std::to_string(kLanes));
  ModelConfig& model = options.training.model;
  app.add_option("--corpus", options.corpus_directory, "directory of the text to train on");
  app.add_option("--steps", options.steps, "train until this many steps are done");
  app.add_option("--report-every", options.report_every, "print the loss every N steps")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.training.seed, "of the initial parameters and the sampling");
  app.add_option("--learning-rate", options.training.adam.learning_rate, "of Adam");
  app.add_option("--embedding", model.embedding, "width of the embedding")->check(lanes);
  app.add_option("--hidden0", model.hidden0, "width of the first hidden layer")->check(lanes);
  app.add_option("--hidden1", model.hidden1, "width of the second hidden layer")->check(lanes);
  app.add_option("--mesh", options.mesh,
                 "how many ranks lie along \"data\" and \"tensor\"; without it all along data")
      ->type_name("data=N,tensor=M");
  app.add_option("--device", arguments.device,
                 "where the state lies and the arithmetic runs; cuda: rank r uses device r modulo "
                 "their number")
      ->type_name("KIND")
      ->check(CLI::IsMember({"host", "cuda"}));
  app.add_option("--final-state", options.state_file,
                 "write the final parameters and moments to this file, as raw floats");
}

void DeclareCheckpoints(CLI::App& app, CheckpointOptions& checkpoints, Arguments& arguments) {
  auto* const series = app.add_option("--checkpoints", checkpoints.series_directory,
                                      "directory of the series of checkpoints");
  app.add_option("--save-every", checkpoints.save_every, "save a checkpoint every N steps; 0: none")
      ->needs(series);
  app.add_flag("--resume", checkpoints.resume,
               "continue from the newest committed checkpoint of the series, if there is one")
      ->needs(series);
  app.add_flag("--async", checkpoints.async,
               "save in the background: training goes on once the state is copied")
      ->needs(series);
  app.add_option("--trace", checkpoints.trace_directory,
                 "write what each rank's saves and loads take to rank-N.json in this directory")
      ->type_name("DIR")
      ->needs(series);
  app.add_flag("--quiet", checkpoints.quiet, "draw no progress of saves and loads on the terminal");
  auto* const die_at =
      app.add_option("--die-at", arguments.die_at,
                     "kill a rank with SIGKILL in this phase of the save of this step")
          ->type_name("STEP:PHASE")
          ->needs(series);
  app.add_option("--die-rank", arguments.die_rank,
                 "which rank; without it the last one, or rank 0 in a phase that only it has")
      ->needs(die_at);
}

// All three return an error message, empty on success.

std::string ParseDevice(const Arguments& arguments, Options& options) {
  options.cuda = arguments.device == "cuda";
  return options.cuda && !HasCuda() ? "--device: this program was built without CUDA" : "";
}

// "20:write-blobs".
std::string ParseDieAt(const Arguments& arguments, CheckpointOptions& checkpoints) {
  const std::string& text = arguments.die_at;
  const std::size_t colon = text.find(':');
  const std::string step = text.substr(0, colon);
  if (colon == std::string::npos || step.empty() || step.size() > 18 ||
      step.find_first_not_of("0123456789") != std::string::npos) {
    return "--die-at: \"" + text + "\" is not STEP:PHASE";
  }
  const auto phase = FindSavePhase(text.substr(colon + 1));
  if (!phase) {
    return "--die-at: the phases of a save are " + SavePhaseNames();
  }
  if (*phase == sealpoint::Phase::kSnapshot && !checkpoints.async) {
    return "--die-at: only saves with --async have a snapshot";
  }
  checkpoints.die_at = {.step = std::stoull(step), .phase = *phase, .rank = arguments.die_rank};
  if (checkpoints.save_every == 0 || checkpoints.die_at->step % checkpoints.save_every != 0) {
    return "--die-at: step " + step + " is not saved";
  }
  return "";
}

std::string Parse(const Arguments& arguments, Options& options) {
  const std::string error = ParseDevice(arguments, options);
  return error.empty() && !arguments.die_at.empty() ? ParseDieAt(arguments, options.checkpoints)
                                                    : error;
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, bool speaks, int& exit_status) {
  Options options;
  Arguments arguments;
  CLI::App app("Trains a small character language model on all ranks.");
  app.option_defaults()->always_capture_default();
  DeclareTraining(app, options, arguments);
  DeclareCheckpoints(app, options.checkpoints, arguments);
  std::ostringstream unheard;
  try {
    app.parse(argc, argv);
    if (const std::string error = Parse(arguments, options); !error.empty()) {
      throw CLI::ValidationError(error);
    }
  } catch (const CLI::ParseError& error) {
    const int code = speaks ? app.exit(error) : app.exit(error, unheard, unheard);
    exit_status = code == 0 ? 0 : kUsage;
    return std::nullopt;
  }
  return options;
}

}  // namespace char_lm
