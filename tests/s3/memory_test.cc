// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "sealpoint/blob_writer.h"
#include "sealpoint/engine.h"
#include "sealpoint/object_store.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/object_store/stub.h"
#include "tests/support/process/sanitizer.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint {
namespace {

// In bytes, of /proc/self/status; 0 if it is not there.
std::uint64_t MemoryOfProcess(std::string_view what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(what)) continue;
    return std::strtoull(line.c_str() + what.size() + 1, nullptr, 10) * kKiB;
  }
  return 0;
}

bool ResetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

// All that a save holds: staging, the parts that are filled, and those that are sent, of which
// there would be the whole state otherwise, since the server is slower than the memory.
TEST(S3Memory, ASaveStaysWithinTheBudget) {
#if SEALPOINT_TEST_HAS_SANITIZER
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr std::uint64_t kBudget = 32 * kMiB;
  // Buffers of libcurl, 1.5 MiB for each of the four requests that are under way, stacks, tables,
  // and what malloc keeps for each thread: 9 to 17 MiB were seen.
  constexpr std::uint64_t kFixed = 24 * kMiB;
  testing::StubServer stub;
  S3Options options = stub.Options();
  options.requests_in_flight_max = 64;
  const auto storage = ObjectStorage(S3Store("bucket", options).value()).value();
  const Bytes content = testing::NoiseBytes(1, 128 * kMiB);
  const auto engine = Engine::Create({.memory_budget_bytes = kBudget,
                                      .staging_buffer_size_bytes = 1 * kMiB,
                                      .io_thread_count = 2,
                                      .storage = storage})
                          .value();
  ASSERT_TRUE(storage->CreateDirectories("s3://bucket/run").ok());
  if (!ResetPeak()) GTEST_SKIP() << "the peak of this process's memory cannot be reset";
  const std::uint64_t before = MemoryOfProcess("VmRSS:");
  const auto writer = BlobWriter::Create(*engine, "s3://bucket/run").value();
  const Status added =
      writer->Add(testing::ByteTensor("w", content.size()), testing::Slice(0, content.size()),
                  MemoryView::Host(std::span(content)));
  ASSERT_TRUE(added.ok()) << added.ToString();
  ASSERT_TRUE(writer->Finish().ok());
  const std::uint64_t peak = MemoryOfProcess("VmHWM:") - before;
  EXPECT_LE(peak, kBudget + kFixed);
  EXPECT_GE(peak, kBudget / 2) << "it is used";
  EXPECT_GE(stub.Count("UploadPart"), 26);
}

}  // namespace
}  // namespace sealpoint
