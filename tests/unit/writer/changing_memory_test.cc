// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "sealpoint/blob_writer.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

// Memory whose first byte changes when its last page is come to.
class ChangingMemory {
 public:
  explicit ChangingMemory(std::size_t size) : size_(size) {
    void* const mapped =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = static_cast<std::byte*>(mapped);
    last_page_ = base_ + size - kPageSize;
    struct sigaction action = {};
    action.sa_handler = [](int) {
      mprotect(last_page_, kPageSize, PROT_READ | PROT_WRITE);
      *base_ ^= std::byte{1};
    };
    sigaction(SIGSEGV, &action, &before_);
    mprotect(last_page_, kPageSize, PROT_NONE);
  }
  ~ChangingMemory() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(base_, size_);
  }
  ChangingMemory(const ChangingMemory&) = delete;
  ChangingMemory& operator=(const ChangingMemory&) = delete;

  const std::byte* data() const { return base_; }

 private:
  static constexpr std::size_t kPageSize = 4096;
  static inline std::byte* base_ = nullptr;
  static inline std::byte* last_page_ = nullptr;
  std::size_t size_ = 0;
  struct sigaction before_ = {};
};

// Whoever changes a tensor while it is saved gets a digest of what was stored, not of what it was.
TEST(ChangingMemoryTest, ACodedChunkIsHashedAsItWasCopied) {
  const auto storage = MemoryStorage();
  const auto engine = SmallEngine(storage);
  ASSERT_TRUE(storage->CreateDirectories("checkpoint").ok());
  const ChangingMemory memory(kMiB);
  TensorSpec tensor = ByteTensor("w", kMiB);
  tensor.codec = Codec::kZstd;
  tensor.chunk_size_bytes = kMiB;
  const auto writer = BlobWriter::Create(*engine, "checkpoint").value();
  ASSERT_TRUE(writer->Add(tensor, Slice(0, kMiB), MemoryView::Host(memory.data(), kMiB)).ok());
  EXPECT_EQ(*memory.data(), std::byte{1}) << "the memory did not change";
  Commit(*storage, "checkpoint", {}, writer->Finish().value()).value();
  EXPECT_EQ(FindDamage(storage, "checkpoint"), "");
}

}  // namespace
}  // namespace sealpoint::testing
