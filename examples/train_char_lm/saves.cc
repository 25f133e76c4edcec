// SPDX-License-Identifier: Apache-2.0
#include "saves.h"

#include <array>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "fingerprint.h"

namespace char_lm {
namespace {

// Adds the time of its life to a sum.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Stopwatch(Clock::duration& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += Clock::now() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Clock::duration& sum_;
  const Clock::time_point begin_ = Clock::now();
};

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::uint64_t FingerprintState(const Trainer& trainer, bool speaks) {
  const std::vector<float> whole = trainer.WholeState();
  return speaks ? Fingerprint(std::as_bytes(std::span(whole))) : 0;
}

void PrintState(std::uint64_t step, std::uint64_t state, const std::string& what) {
  std::printf("step %4llu  state %016llx  %s\n", static_cast<unsigned long long>(step),
              static_cast<unsigned long long>(state), what.c_str());
}

std::string NameOf(const std::string& directory) {
  return directory.substr(directory.rfind('/') + 1);
}

void Saves::AfterStep() {
  Poll();
  if (checkpoints_.IsSaveDue()) {
    Save();
  }
}

void Saves::Save() {
  std::uint64_t state = 0;
  {
    const Stopwatch watch(fingerprints_);
    state = FingerprintState(trainer_, speaks_);
  }
  const std::uint64_t step = trainer_.step();
  ++count_;
  if (!options_.async) {
    const auto saved = [this] {
      const Stopwatch watch(standstill_);
      return checkpoints_.Save();
    }();
    Report(step, state, saved);
    return;
  }
  auto pending = [this] {
    const Stopwatch watch(standstill_);
    return checkpoints_.SaveAsync();
  }();
  if (pending.ok()) {
    begun_.push_back({.step = step, .state = state, .pending = std::move(*pending)});
  } else {
    Report(step, state, pending.error());
  }
}

// One call carries on all saves, since they are taken one after the other.
void Saves::Poll() {
  while (!begun_.empty()) {
    const Begun& oldest = begun_.front();
    const auto state = [&] {
      const Stopwatch watch(standstill_);
      return oldest.pending->Poll();
    }();
    if (state == sealpoint::SaveState::kRunning) {
      return;
    }
    Report(oldest.step, oldest.state, oldest.pending->Wait());
    begun_.pop_front();
  }
}

void Saves::WaitForAll() {
  for (const Begun& save : begun_) {
    const auto saved = [&] {
      const Stopwatch watch(last_wait_);
      return save.pending->Wait();
    }();
    Report(save.step, save.state, saved);
  }
  begun_.clear();
}

void Saves::Report(std::uint64_t step, std::uint64_t state,
                   const sealpoint::Result<sealpoint::CommitInfo>& saved) {
  if (!speaks_) {
    return;
  }
  const auto hold = checkpoints_.progress().Hold();
  if (!saved.ok()) {
    std::fprintf(stderr, "train_char_lm: save of step %llu failed: %s\n",
                 static_cast<unsigned long long>(step), saved.error().ToString().c_str());
    return;
  }
  std::array<char, 64> cost{};
  std::snprintf(cost.data(), cost.size(), "  %.1f MB in %.2f s",
                static_cast<double>(saved->total_bytes) / 1e6, saved->report.total_seconds());
  PrintState(step, state, "saved " + NameOf(saved->directory) + cost.data());
}

void Saves::PrintStandstill() const {
  if (!speaks_ || count_ == 0) {
    return;
  }
  const double all = Seconds(Clock::now() - begin_ - fingerprints_ - last_wait_);
  const double stood = Seconds(standstill_);
  std::printf("%llu save%s%s: training stood still for %.3f s of %.3f s (%.1f %%)",
              static_cast<unsigned long long>(count_), count_ == 1 ? "" : "s",
              options_.async ? " in the background" : "", stood, all, 100 * stood / all);
  if (options_.async) {
    std::printf(", and then waited %.3f s for the last saves", Seconds(last_wait_));
  }
  std::printf("\n");
}

}  // namespace char_lm
