// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/staging_estimate.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "lib/base/internal_access.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/staged_writer.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using internal::writer::StagedWriter;
using internal::writer::StagingEstimate;

constexpr std::uint64_t kBufferSize = 4 * kKiB;

// Tensors, empty tensors and objects of random sizes in random groups, in blobs of at most 1 MiB.
class RandomState {
 public:
  explicit RandomState(std::uint32_t seed) : random_(seed) {}

  template <typename Add, typename AddEmpty, typename AddObject>
  void ForEach(const Add& add, const AddEmpty& add_empty, const AddObject& add_object) {
    const int count = 1 + static_cast<int>(random_() % 60);
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(i);
      const std::uint64_t kind = random_() % 10;
      const std::uint64_t size = 1 + random_() % (kind < 2 ? 1500000 : kind < 6 ? 40000 : 100);
      TensorSpec tensor = ByteTensor(name, kind == 9 ? 0 : size);
      tensor.group = std::to_string(random_() % 4);
      if (random_() % 4 == 0) tensor.chunk_size_bytes = 64 * kKiB;
      if (kind == 9) {
        add_empty(tensor);
      } else if (kind == 8) {
        add_object(name, size);
      } else {
        add(tensor, size);
      }
    }
  }

 private:
  std::mt19937 random_;
};

TEST(StagingEstimateTest, IsNeverTooSmallAndSeldomMuchTooLarge) {
  const Bytes memory(1500000, std::byte{0x5a});
  std::uint64_t used_in_all = 0;
  std::uint64_t estimated_in_all = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const auto engine = SmallEngine(MemoryStorage(), 60000, kBufferSize);
    StagingEstimate room(kMiB, kBufferSize);
    RandomState(seed).ForEach(
        [&](const TensorSpec& tensor, std::uint64_t size) { room.AddShard(tensor, size); },
        [&](const TensorSpec& tensor) { room.AddEmpty(tensor); },
        [&](const std::string& name, std::uint64_t size) {
          room.AddObject({.name = name, .media_type = "a/b"}, size);
        });
    ASSERT_TRUE(InternalAccess::PartsOf(*engine).TryReserve(room.buffer_count()));
    StagedWriter writer(InternalAccess::PartsOf(*engine), room.buffer_count(),
                        {.size_max_bytes = kMiB});
    RandomState(seed).ForEach(
        [&](const TensorSpec& tensor, std::uint64_t size) {
          const Status added = writer.AddTensor(tensor, Slice(0, size),
                                                MemoryView::Host(std::span(memory).first(size)));
          ASSERT_TRUE(added.ok()) << added.ToString();
        },
        [&](const TensorSpec& tensor) { ASSERT_TRUE(writer.AddEmptyTensor(tensor).ok()); },
        [&](const std::string& name, std::uint64_t size) {
          ASSERT_TRUE(
              writer
                  .AddNamedObject({.name = name, .media_type = "a/b"}, ByteSpan(memory).first(size))
                  .ok());
        });
    const std::uint64_t used = engine->stats().mapped_bytes / kBufferSize;
    ASSERT_LE(used, room.buffer_count()) << "seed " << seed;
    used_in_all += used;
    estimated_in_all += room.buffer_count();
  }
  EXPECT_LT(estimated_in_all, used_in_all + used_in_all / 4);
}

}  // namespace
}  // namespace sealpoint::testing
