// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/staged_writer.h"
#include "sealpoint/blob_writer.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

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
  static void ChangeAll() {
    for (std::byte* byte = base_; byte != last_page_ + kPageSize; ++byte) *byte ^= std::byte{255};
  }

 private:
  static constexpr std::size_t kPageSize = 4096;
  static inline std::byte* base_ = nullptr;
  static inline std::byte* last_page_ = nullptr;
  std::size_t size_ = 0;
  struct sigaction before_ = {};
};

// The ways from a source to a file.
struct WritePath {
  std::string name;
  std::size_t size = kMiB;
  Codec codec = Codec::kNone;
  bool is_strided = false;
  bool is_staged = false;  // copied at once, written later: a save in the background
  bool is_posix = false;   // written past the page cache where the file system can
};

class ChangingMemoryTest : public ::testing::TestWithParam<WritePath> {
 protected:
  ChangingMemoryTest()
      : storage_(std::make_shared<FailingStorage>(GetParam().is_posix ? PosixStorage()
                                                                      : MemoryStorage())),
        engine_(SmallEngine(storage_, 8, 4 * kMiB)) {
    EXPECT_TRUE(storage_->CreateDirectories(directory_).ok());
  }

  std::vector<BlobSummary> Write(const ChangingMemory& memory) {
    const std::size_t size = GetParam().size;
    TensorSpec tensor = ByteTensor("w", size);
    tensor.codec = GetParam().codec;
    tensor.chunk_size_bytes = kMiB;
    // From the last byte to the first.
    const MemoryView source = GetParam().is_strided
                                  ? MemoryView::Host(memory.data(), size, {-1}, size - 1)
                                  : MemoryView::Host(memory.data(), size);
    if (!GetParam().is_staged) {
      const auto writer = BlobWriter::Create(*engine_, directory_).value();
      EXPECT_TRUE(writer->Add(tensor, Slice(0, size), source).ok());
      return writer->Finish().value();
    }
    internal::pipeline::EngineParts& parts = InternalAccess::PartsOf(*engine_);
    EXPECT_TRUE(parts.TryReserve(4));
    internal::writer::StagedWriter writer(parts, 4, {});
    EXPECT_TRUE(writer.AddTensor(tensor, Slice(0, size), source).ok());
    const auto bound =
        std::move(writer).Bind(storage_->OpenDirectory(directory_).value(), AttemptId{});
    EXPECT_TRUE(bound.status.ok());
    return bound.writer->Finish().value();
  }

  const TempDir folder_;
  const std::string directory_ = GetParam().is_posix ? folder_.path() + "/c" : "c";
  const std::shared_ptr<FailingStorage> storage_;
  const std::unique_ptr<Engine> engine_;
};

// Whoever changes a tensor while it is saved gets digests of what was stored, not of what it was.
TEST_P(ChangingMemoryTest, IsStoredAsItWasHashed) {
  const ChangingMemory memory(GetParam().size);
  int writes = 0;
  storage_->SetHook([&writes](StorageOp op, std::string_view) {
    if (op != StorageOp::kWrite) return;
    ChangingMemory::ChangeAll();
    ++writes;
  });
  const std::vector<BlobSummary> summaries = Write(memory);
  EXPECT_GT(writes, 0) << "the memory did not change";
  storage_->Heal();
  Commit(*storage_, directory_, {}, summaries).value();
  EXPECT_EQ(FindDamage(storage_, directory_), "");
}

INSTANTIATE_TEST_SUITE_P(
    , ChangingMemoryTest,
    ::testing::Values(WritePath{.name = "Unstaged"}, WritePath{.name = "Small", .size = kMiB / 2},
                      WritePath{.name = "Strided", .is_strided = true},
                      WritePath{.name = "Coded", .codec = Codec::kZstd},
                      WritePath{.name = "Staged", .is_staged = true},
                      WritePath{.name = "StagedAndCoded", .codec = Codec::kZstd, .is_staged = true},
                      WritePath{.name = "Posix", .is_posix = true}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace sealpoint::testing
