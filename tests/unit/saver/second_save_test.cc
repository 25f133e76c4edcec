// SPDX-License-Identifier: Apache-2.0
//
// The second save of the same state makes no large allocation: every way to memory of the C library
// is counted while it runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sealpoint/saver.h"
#include "tests/support/process/sanitizer.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"

namespace {

constexpr std::size_t kLargeSizeBytes = 256 * 1024;
std::atomic<bool> is_counting{false};
std::atomic<int> large_count{0};

[[maybe_unused]] void Count(std::size_t size) {
  if (is_counting.load() && size >= kLargeSizeBytes) ++large_count;
}

}  // namespace

#if !SEALPOINT_TEST_HAS_SANITIZER
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  Count(size);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  Count(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  Count(size);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  Count(size);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

namespace sealpoint::testing {
namespace {

// operator new of the C++ library asks malloc.
TEST(SecondSaveTest, CountsWhatItShould) {
  if (SEALPOINT_TEST_HAS_SANITIZER) GTEST_SKIP() << "the sanitizer has its own memory";
  is_counting = true;
  const std::vector<char> large(kLargeSizeBytes);
  is_counting = false;
  EXPECT_EQ(large_count.exchange(0), 1);
  EXPECT_EQ(large.front(), 0);
}

// However few of them are in use at once in the first one; and more than these never are, however
// many there may be: the disk takes no more at once.
TEST(SecondSaveTest, FindsAllTheBuffersThatItCanUse) {
  constexpr std::uint64_t kTensorSize = 1000000;
  const Bytes memory(kTensorSize);
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("t", kTensorSize)}).value();
  const auto engine = SmallEngine(MemoryStorage(), 64, 16 * kKiB);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind("t", MemoryView::Host(memory)).ok());
  ASSERT_TRUE(saver->Save(SaveTarget::Directory("first"), {.step = 1}, sources).ok());
  EXPECT_EQ(engine->stats().mapped_bytes, 16 * 16 * kKiB);
}

TEST(SecondSaveTest, OfASaveInTheBackgroundFindsRoomForAllOfTheState) {
  constexpr std::uint64_t kTensorSize = 1000000;
  const Bytes memory(kTensorSize);
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("t", kTensorSize)}).value();
  const auto engine = SmallEngine(MemoryStorage(), 80, 16 * kKiB);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind("t", MemoryView::Host(memory)).ok());
  const auto pending =
      saver->SaveAsync(SaveTarget::Directory("first"), {.step = 1}, sources).value();
  ASSERT_TRUE(pending->Wait().ok());
  EXPECT_GE(engine->stats().mapped_bytes, kTensorSize);
}

TEST(SecondSaveTest, TheFirstOneMapsNothingEitherWhereTheMemoryIsMappedBefore) {
  const Bytes memory(100000);
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("t", memory.size())}).value();
  const auto engine = SmallEngine(MemoryStorage(), 64, 16 * kKiB);
  ASSERT_TRUE(engine->MapMemory().ok());
  const std::uint64_t before = engine->stats().mapping_count;
  EXPECT_EQ(engine->stats().mapped_bytes, 64 * 16 * kKiB);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind("t", MemoryView::Host(memory)).ok());
  const auto pending =
      saver->SaveAsync(SaveTarget::Directory("first"), {.step = 1}, sources).value();
  ASSERT_TRUE(pending->Wait().ok());
  EXPECT_EQ(engine->stats().mapping_count, before);
}

TEST(SecondSaveTest, MemoryIsMappedInTheBackgroundAndWithinTheBudget) {
  const auto engine = SmallEngine(MemoryStorage(), 64, 16 * kKiB);
  ASSERT_TRUE(engine->MapMemoryInBackground(std::uint64_t{1} << 60).ok());
  ASSERT_TRUE(engine->MapMemoryInBackground(40 * 16 * kKiB).ok());  // instead of the first one
  const auto begin = std::chrono::steady_clock::now();
  while (engine->stats().mapped_bytes < 40 * 16 * kKiB &&
         std::chrono::steady_clock::now() < begin + std::chrono::seconds(20)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(engine->stats().mapped_bytes, 40 * 16 * kKiB);
  EXPECT_LE(engine->stats().mapped_bytes, 64 * 16 * kKiB);
  ASSERT_TRUE(engine->MapMemoryInBackground(64 * 16 * kKiB).ok());  // ends with the engine
}

TEST(SecondSaveTest, MakesNoLargeAllocation) {
  constexpr std::uint64_t kTensorSize = 8 * kMiB;
  const TempDir dir;
  const Bytes memory(kTensorSize, std::byte{7});
  Declaration declaration;
  for (int i = 0; i < 9; ++i) {
    TensorSpec tensor{.name = std::to_string(i), .dtype = DType::kUInt8, .shape = {kTensorSize}};
    if (i == 8) tensor.codec = Codec::kZstd;
    declaration.Add({.tensor = tensor}).value();
  }
  const auto engine = Engine::Create().value();
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  std::uint64_t mappings_before = 0;
  for (const bool is_second : {false, true}) {
    Sources sources(declaration);
    for (std::size_t slot = 0; slot < 9; ++slot) {
      ASSERT_TRUE(sources.Bind(slot, MemoryView::Host(memory)).ok());
    }
    mappings_before = engine->stats().mapping_count;
    is_counting = is_second;
    const auto info = saver->Save(SaveTarget::Directory(dir / (is_second ? "second" : "first")),
                                  {.step = 1}, sources);
    is_counting = false;
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->raw_bytes, 9 * kTensorSize);
  }
  EXPECT_GT(mappings_before, 0u) << "the first save did map";
  EXPECT_EQ(engine->stats().mapping_count, mappings_before);
  EXPECT_EQ(large_count.load(), 0);
}

}  // namespace
}  // namespace sealpoint::testing
