// SPDX-License-Identifier: Apache-2.0
//
// bench_s3 DIRECTORY MIB: saves a state to s3://… and loads it; prints JSON. Run by rate.py.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "sealpoint/s3.h"

namespace {

using namespace sealpoint;  // NOLINT: a program

constexpr std::uint64_t kTensorSize = 64 * kMiB;

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
  std::exit(1);
}
void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

long PeakMib() {
  // The peak of getrusage() is that of the process that started this one, if that is larger.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtol(line.c_str() + 6, nullptr, 10) / 1024;
  }
  return 0;
}

// Appended to: g++ 12 takes the sum for a copy of overlapping memory.
std::string Name(std::size_t i) { return std::string("t").append(std::to_string(i)); }

void Save(const std::string& directory, const std::vector<Bytes>& state) {
  const auto engine = Must(Engine::Create({.io_thread_count = 2}));
  const auto storage = DefaultStorage();
  Must(storage->CreateDirectories(directory));
  const auto writer = Must(BlobWriter::Create(*engine, directory));
  for (std::size_t i = 0; i < state.size(); ++i) {
    const TensorSpec spec{.name = Name(i), .dtype = DType::kUInt8, .shape = {state[i].size()}};
    const Region whole = Region::Of({.offset = {0}, .extent = {state[i].size()}});
    Must(writer->Add(spec, whole, MemoryView::Host(std::span(state[i]))));
  }
  Must(Commit(*storage, directory, {}, Must(writer->Finish())));
}

void Load(const std::string& directory, std::vector<Bytes>& state) {
  const auto checkpoint = Must(Checkpoint::Open(directory));
  ReadRequest request;
  for (std::size_t i = 0; i < state.size(); ++i) {
    request.Add(Name(i), MutableMemoryView::Host(std::span(state[i])));
  }
  Must(checkpoint->Read(Must(checkpoint->Plan(request))));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Must(RegisterS3Storage());
  std::vector<Bytes> state(std::strtoull(argv[2], nullptr, 10) * kMiB / kTensorSize,
                           Bytes(kTensorSize));
  std::mt19937_64 random(1);
  for (Bytes& tensor : state) {
    for (std::byte& each : tensor) each = static_cast<std::byte>(random());
  }
  const long before = PeakMib();
  double begin = Seconds();
  Save(argv[1], state);
  const double save = Seconds() - begin;
  const long saved = PeakMib();
  begin = Seconds();
  Load(argv[1], state);
  const double load = Seconds() - begin;
  std::printf("{\"save_s\": %.4f, \"load_s\": %.4f, \"save_mib\": %ld, \"load_mib\": %ld}\n", save,
              load, saved - before, PeakMib() - before);
  return 0;
}
