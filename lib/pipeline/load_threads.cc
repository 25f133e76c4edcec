// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/load_threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/bytes.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal::pipeline {
namespace {

// More read no faster than a few storage devices or the memory of a host give.
constexpr int kThreadsAutoMax = 16;
// A thread that reads less costs more than it gains.
constexpr std::uint64_t kBytesPerThread = 4 * kMiB;

// Ranks of this host, from Open MPI, MPICH and its descendants, torchrun, and Slurm, whose text may
// be "4(x2)": that of the first host.
constexpr const char* kLocalSizes[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                       "LOCAL_WORLD_SIZE", "SLURM_STEP_TASKS_PER_NODE"};

int CountProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

Result<int> LoadThreads(std::string_view name, int threads, int processes,
                        std::uint64_t size_bytes) {
  SEALPOINT_RETURN_IF_ERROR(CheckThreads(name, threads));
  if (threads != kThreadsAuto) return threads;
  const int share = std::clamp(CountProcessors() / std::max(processes, 1), 1, kThreadsAutoMax);
  return static_cast<int>(std::clamp<std::uint64_t>(size_bytes / kBytesPerThread, 1,
                                                    static_cast<std::uint64_t>(share)));
}

int DirectLoadThreads(int threads, std::uint64_t size_bytes) {
  constexpr std::uint64_t kDirectThreadsMin = 4;
  const std::uint64_t useful = std::min(kDirectThreadsMin, size_bytes / kBytesPerThread);
  return std::max(threads, static_cast<int>(useful));
}

std::string ProcessorsText() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  std::string text;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &set) ? '1' : '0';
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

int ProcessesOfHost() {
  for (const char* const name : kLocalSizes) {
    const char* const text = std::getenv(name);
    int count = 0;
    if (text == nullptr ||
        std::from_chars(text, text + std::strlen(text), count).ec != std::errc()) {
      continue;
    }
    if (count >= 1) return count;
  }
  return 1;
}

int ProcessesByEnvironment() {
  const int count = ProcessesOfHost();
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const bool is_bound_apart = static_cast<long>(CountProcessors()) * count <= online;
  return is_bound_apart ? 1 : count;
}

}  // namespace sealpoint::internal::pipeline
