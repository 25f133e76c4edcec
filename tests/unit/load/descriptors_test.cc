// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint has more blobs than the process may have open files.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/in_child.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kBlobs = 1000;

// One tensor with an element in each blob.
MiniContainer ManyBlobs() {
  MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {kBlobs}};
  for (std::uint64_t i = 0; i < kBlobs; ++i) {
    tensor.shards.push_back({.region = Region::Of({.offset = {i}, .extent = {1}}),
                             .bytes = {static_cast<std::byte>(i % 251)},
                             .blob = static_cast<int>(i)});
  }
  return BuildMini({.tensors = {tensor}});
}

bool LoadsWith(const std::string& path, rlim_t descriptors, int threads) {
  const rlimit limit{descriptors, descriptors};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const auto checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) return false;
  std::vector<std::byte> memory(kBlobs);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(memory.data(), memory.size()));
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto loaded = (*checkpoint)->Load(request, {}, {.threads = threads});
    if (!loaded.ok()) {
      std::fprintf(stderr, "%s\n", loaded.error().ToString().c_str());
      return false;
    }
  }
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != static_cast<std::byte>(i % 251)) return false;
  }
  return true;
}

class DescriptorsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { StoreFiles(*PosixStorage(), path_, ManyBlobs().files); }

  TempDir directory_;
  const std::string path_ = directory_ / "checkpoint";
};

TEST_P(DescriptorsTest, LoadsWhereFewFilesMayBeOpen) {
  EXPECT_TRUE(HoldsInChild([&] { return LoadsWith(path_, 64, GetParam()); }));
}

// Fewer than what is kept open for speed: files are closed when no other can be opened.
TEST_P(DescriptorsTest, FilesThatAreKeptOpenAreClosedWhenOthersAreNeeded) {
  EXPECT_TRUE(HoldsInChild([&] { return LoadsWith(path_, 20, GetParam()); }));
}

INSTANTIATE_TEST_SUITE_P(Threads, DescriptorsTest, ::testing::Values(1, 4));

}  // namespace
}  // namespace sealpoint::testing
