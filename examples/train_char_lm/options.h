// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpointing.h"
#include "trainer.h"

namespace char_lm {

// The command line.
struct Options {
  std::string corpus_directory = "/usr/share/common-licenses";
  std::string state_file;
  std::string mesh;   // empty: all ranks on the axis "data"
  bool cuda = false;  // compute on CUDA devices, not on the host
  std::uint64_t steps = 60;
  std::uint64_t report_every = 10;
  TrainingArguments training;
  CheckpointOptions checkpoints;
};

// Returns nothing, and sets the exit status, where the program is to end at once: after --help or
// after a mistake in the arguments. The message was printed if `speaks`.
std::optional<Options> ParseOptions(int argc, char** argv, bool speaks, int& exit_status);

}  // namespace char_lm
