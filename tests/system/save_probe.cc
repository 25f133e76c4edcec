// SPDX-License-Identifier: Apache-2.0
//
// Saves small known states, as one rank of a job or alone, for tests that make the system fail
// around it:
//
//   save_probe (--series PATH | --directory PATH) [--save STEP[,STEP]] [--rows N]
//              [--deadline-ms N] [--at-phase PHASE --on-rank RANK --run COMMAND] [--linger FILE]
//              [--keep-last N] [--check]
//
// Prints one line of JSON per rank and save with its outcome on this rank. --keep-last prunes the
// series after the saves, with a line of its own. --check reads, before and after all that, every
// committed checkpoint of the series and compares all bytes with those of its step. COMMAND is run
// by the shell when PHASE of the first save begins on this rank; $PPID is the rank there. With
// --linger the rank stays until FILE exists, and then ends without the others. Exit status: 0
// whatever the saves returned, 1 if the ranks were lost, 2 if bytes are wrong.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "tests/system/probe_ranks.h"
#include "tests/system/probe_state.h"

namespace sealpoint::testing {
namespace {

constexpr int kLost = 1;
constexpr int kWrongBytes = 2;
constexpr int kUsage = 64;

struct Options {
  std::string series{};
  std::string directory{};
  std::vector<std::uint64_t> steps{};
  std::uint64_t row_count = 24;
  std::chrono::milliseconds deadline{30000};
  std::string phase{};
  int rank = -1;
  std::string command{};
  std::string linger{};
  std::uint32_t keep_last = 0;  // 0: nothing is pruned
  bool check = false;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--check") {
      options.check = true;
      continue;
    }
    if (++i == argc) std::exit(kUsage);
    const std::string value = argv[i];
    if (name == "--series") options.series = value;
    if (name == "--directory") options.directory = value;
    std::stringstream steps(name == "--save" ? value : "");
    for (std::string one; std::getline(steps, one, ',');) options.steps.push_back(std::stoull(one));
    if (name == "--rows") options.row_count = std::stoull(value);
    if (name == "--deadline-ms") options.deadline = std::chrono::milliseconds(std::stoll(value));
    if (name == "--at-phase") options.phase = value;
    if (name == "--on-rank") options.rank = std::stoi(value);
    if (name == "--run") options.command = value;
    if (name == "--linger") options.linger = value;
    if (name == "--keep-last") options.keep_last = static_cast<std::uint32_t>(std::stoul(value));
  }
  if (options.series.empty() == options.directory.empty()) std::exit(kUsage);
  return options;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted.push_back('\\');
    quoted.push_back(letter == '\n' ? ' ' : letter);
  }
  return quoted + "\"";
}

// One write per line, since all ranks share the pipe.
void PrintLine(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void PrintResult(int rank, std::uint64_t step, const Result<CommitInfo>& result, double seconds) {
  const Status& error = result.error();
  std::ostringstream line;
  line << "{\"rank\": " << rank << ", \"step\": " << step
       << ", \"code\": " << Quoted(std::string(CodeName(error.code())))
       << ", \"unknown\": " << (OutcomeIsUnknown(error) ? "true" : "false")
       << ", \"message\": " << Quoted(error.message())
       << ", \"rule\": " << Quoted(error.place().rule)
       << ", \"path\": " << Quoted(error.place().path)
       << ", \"cause\": " << error.place().rank.value_or(-1)
       << ", \"directory\": " << Quoted(result.ok() ? result->directory : "")
       << ", \"seconds\": " << seconds << "}\n";
  PrintLine(line.str());
}

void Prune(const std::string& series, std::uint32_t keep_last) {
  const PruneReport report = Series(series).Prune({.keep_last = keep_last});
  std::string deleted;
  for (const PruneDecision& decision : report.decisions) {
    if (!decision.is_deleted) continue;
    deleted += (deleted.empty() ? "" : ", ") + Quoted(decision.entry.name);
  }
  PrintLine("{\"pruned\": [" + deleted +
            "], \"code\": " + Quoted(std::string(CodeName(report.status.code()))) +
            ", \"message\": " + Quoted(report.status.message()) +
            ", \"path\": " + Quoted(report.status.place().path) + "}\n");
}

bool CheckSeries(const std::string& path) {
  bool is_right = true;
  const auto listing = Series(path).List();
  if (!listing.ok()) return listing.error().code() == Code::kNotFound;
  for (const SeriesEntry& entry : listing->entries) {
    if (entry.verdict != Verdict::kCommitted) continue;
    const std::string wrong = FindWrongBytes(entry.path);
    is_right = is_right && wrong.empty();
    PrintLine("{\"checked\": " + std::to_string(entry.step) + ", \"wrong\": " + Quoted(wrong) +
              "}\n");
  }
  return is_right;
}

class Probe {
 public:
  Probe(Communicator& comm, Options options)
      : comm_(comm),
        options_(std::move(options)),
        engine_(Engine::Create(
                    {.memory_budget_bytes = 64 * kKiB, .staging_buffer_size_bytes = 16 * kKiB})
                    .value()),
        saver_(Saver::Create(*engine_, comm,
                             {.deadline = options_.deadline,
                              .on_progress = [this](const PhaseEvent& event) { OnPhase(event); }})
                   .value()) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  int Run() {
    if (!Check()) return kWrongBytes;
    bool is_lost = false;
    for (const std::uint64_t step : options_.steps) is_lost = !Save(step) || is_lost;
    while (!options_.linger.empty() && !std::filesystem::exists(options_.linger)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (is_lost || !options_.linger.empty()) return kLost;
    if (options_.keep_last > 0 && comm_.rank() == 0) Prune(options_.series, options_.keep_last);
    return Check() ? 0 : kWrongBytes;
  }

 private:
  bool Check() const {
    return !options_.check || comm_.rank() != 0 || CheckSeries(options_.series);
  }

  // False if the ranks lost one another.
  bool Save(std::uint64_t step) {
    const ProbeState state(comm_.rank(), comm_.size(), options_.row_count, step);
    const SaveTarget target = options_.series.empty() ? SaveTarget::Directory(options_.directory)
                                                      : SaveTarget::InSeries(options_.series);
    const auto begin = std::chrono::steady_clock::now();
    const auto result = saver_->Save(target, {.step = step}, state.sources());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    PrintResult(comm_.rank(), step, result, passed.count());
    const Code code = result.error().code();
    return code != Code::kComm && code != Code::kTimeout;
  }

  void OnPhase(const PhaseEvent& event) {
    if (event.kind != PhaseEvent::Kind::kBegin || comm_.rank() != options_.rank) return;
    if (has_run_ || PhaseName(event.phase) != options_.phase) return;
    has_run_ = true;
    if (std::system(options_.command.c_str()) != 0) PrintLine("the command failed\n");
  }

  Communicator& comm_;
  const Options options_;
  bool has_run_ = false;
  const std::unique_ptr<Engine> engine_;
  const std::unique_ptr<Saver> saver_;
};

}  // namespace
}  // namespace sealpoint::testing

int main(int argc, char** argv) {
  using sealpoint::testing::ParseOptions;
  const auto options = ParseOptions(argc, argv);
  return sealpoint::testing::RunOnRank(argc, argv, [&options](sealpoint::Communicator& comm) {
    return sealpoint::testing::Probe(comm, options).Run();
  });
}
