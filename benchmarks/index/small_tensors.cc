// SPDX-License-Identifier: Apache-2.0
//
// Many small tensors on one rank: seconds and peak memory of a save, a load and a plan of the load,
// each in a process of its own, per tensor and beside the same bytes in one plain file.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/common/arguments.h"
#include "benchmarks/common/paired.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"

namespace sealpoint::bench {
namespace {

struct Options {
  std::string directory = ".";
  std::uint64_t tensors = 300000;
  std::uint64_t tensor_bytes = 64;
  std::string profile;
};

std::string TensorName(std::uint64_t i) {
  char name[64];
  std::snprintf(name, sizeof(name), "model.layers.%05ju.block.%02ju.weight", std::uintmax_t{i / 16},
                std::uintmax_t{i % 16});
  return name;
}

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

using Memory = std::vector<std::byte>;
std::span<std::byte> PartOf(const Options& options, Memory& memory, std::uint64_t i) {
  return std::span(memory).subspan(i * options.tensor_bytes, options.tensor_bytes);
}

void Save(const Options& options, const std::string& directory, Memory& memory) {
  const auto engine = Engine::Create();
  Check(engine.status());
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(**engine, *comm);
  Check(saver.status());
  Declaration held;
  for (std::uint64_t i = 0; i < options.tensors; ++i) {
    const auto slot = held.Add(
        {.tensor = {
             .name = TensorName(i), .dtype = DType::kF32, .shape = {options.tensor_bytes / 4}}});
    Check(slot.status());
  }
  Sources sources(held);
  for (std::uint64_t i = 0; i < options.tensors; ++i) {
    Check(
        sources.Bind(i, MemoryView::Host(PartOf(options, memory, i).data(), options.tensor_bytes)));
  }
  Check((*saver)->Save(SaveTarget::Directory(directory), {.step = 1}, sources).status());
}

ReadRequest RequestAll(const Options& options, Memory& memory) {
  ReadRequest request;
  request.items.reserve(options.tensors);
  for (std::uint64_t i = 0; i < options.tensors; ++i) {
    request.Add(TensorName(i),
                MutableMemoryView::Host(PartOf(options, memory, i).data(), options.tensor_bytes));
  }
  return request;
}

void Plan(const Options& options, const std::string& directory, Memory& memory) {
  const auto checkpoint = Checkpoint::Open(directory);
  Check(checkpoint.status());
  Check((*checkpoint)->Plan(RequestAll(options, memory)).status());
}

void Load(const Options& options, const std::string& directory, Memory& memory) {
  const auto checkpoint = Checkpoint::Open(directory);
  Check(checkpoint.status());
  Check((*checkpoint)->Load(RequestAll(options, memory)).status());
}

void WritePlainFile(const std::string& path, const Memory& memory) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(memory.data()),
             static_cast<std::streamsize>(memory.size()));
  if (!file.flush()) std::abort();
}

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads
  double mebibytes = 0;    // the peak of the process
};

Cost InProcess(const std::function<void()>& work) {
  const Stopwatch watch;
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || status != 0) std::exit(1);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {.seconds = watch.seconds(),
          .cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
          .mebibytes = static_cast<double>(usage.ru_maxrss) / 1024};
}

void Print(const char* what, const Options& options, const Cost& cost) {
  const auto count = static_cast<double>(options.tensors);
  std::printf("%-12s %7.2f s, of processors %7.2f s, %6.0f MiB; per tensor %6.2f us, %6.0f bytes\n",
              what, cost.seconds, cost.cpu_seconds, cost.mebibytes, cost.cpu_seconds * 1e6 / count,
              cost.mebibytes * 1024 * 1024 / count);
  std::fflush(stdout);
}

// One phase in this process; a plan and a load need what a save left.
void Profile(const Options& options, const std::string& directory) {
  Memory memory(options.tensors * options.tensor_bytes, std::byte{1});
  if (options.profile == "save") {
    std::filesystem::remove_all(directory);
    Save(options, directory, memory);
  }
  if (options.profile == "plan") Plan(options, directory, memory);
  if (options.profile == "load") Load(options, directory, memory);
}

void Measure(const Options& options, const std::string& directory) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const auto with_memory = [&](const std::function<void(Memory&)>& work) {
    return InProcess([&] {
      Memory memory(options.tensors * options.tensor_bytes, std::byte{1});
      work(memory);
    });
  };
  std::printf("%ju tensors of %ju bytes\n", std::uintmax_t{options.tensors},
              std::uintmax_t{options.tensor_bytes});
  Print("plain file", options,
        with_memory([&](Memory& memory) { WritePlainFile(directory + "/plain", memory); }));
  const std::string saved = directory + "/saved";
  Print("save", options, with_memory([&](Memory& memory) { Save(options, saved, memory); }));
  Print("plan", options, with_memory([&](Memory& memory) { Plan(options, saved, memory); }));
  Print("load", options, with_memory([&](Memory& memory) { Load(options, saved, memory); }));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sealpoint::bench

int main(int argc, char** argv) {
  sealpoint::bench::Options options;
  sealpoint::bench::Arguments arguments("Many small tensors: time and memory.");
  arguments.Add("--directory", options.directory, "where to write");
  arguments.Add("--tensors", options.tensors, "how many");
  arguments.Add("--tensor-bytes", options.tensor_bytes, "of each, a multiple of 4");
  arguments.Add("--profile", options.profile, "save, plan or load: only that, for a profiler");
  if (const auto status = arguments.Parse(argc, argv)) return *status;
  const std::string directory = options.directory + "/small-tensors";
  if (options.profile.empty()) {
    sealpoint::bench::Measure(options, directory);
  } else {
    sealpoint::bench::Profile(options, directory + "/saved");
  }
  return 0;
}
