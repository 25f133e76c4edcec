// SPDX-License-Identifier: Apache-2.0
// A state that was saved from host memory is loaded to memory of a real device.
#include <span>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "tests/cuda/cuda_fixture.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kRows = 3000;
constexpr std::uint64_t kColumns = 1000;  // 11.4 MiB of f32: two whole chunks and a part of one
constexpr std::uint64_t kBytes = kRows * kColumns * 4;
const Shape kShape = {kRows, kColumns};

class CudaLoadTest : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    if (IsSkipped()) return;
    state_.resize(kRows * kColumns);
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] = static_cast<float>(i % 8191);
    const auto engine = Engine::Create({.storage = storage_}).value();
    ASSERT_TRUE(storage_->CreateDirectories("c").ok());
    const auto writer = BlobWriter::Create(*engine, "c").value();
    ASSERT_TRUE(writer
                    ->Add({.name = "w", .dtype = DType::kF32, .shape = kShape},
                          Region::Whole(kShape), MemoryView::Host(state_.data()))
                    .ok());
    ASSERT_TRUE(Commit(*storage_, "c", {}, writer->Finish().value()).ok());
    checkpoint_ = Checkpoint::Open("c", {.storage = storage_}).value();
  }

  // What a load leaves in device memory that a long write on the user's stream came before.
  std::vector<float> Load(const std::vector<std::int64_t>& strides, std::uint64_t size,
                          const ReadOptions& options, std::uint64_t& bytes_verified) {
    const auto memory = Allocate(size);
    const Bytes garbage(size, std::byte{0x55});
    for (int i = 0; i < 8; ++i) QueueWrite(stream_, garbage, memory->address());
    ReadRequest request;
    request.Add("w", MemoryView::MutableCuda(memory->address(), 0, stream_, strides));
    const auto report = checkpoint_->Load(request, {}, options);
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    if (report.ok()) bytes_verified = report->bytes_verified_on_device;
    std::vector<float> loaded(size / 4);
    const auto queue = runtime_->MakeQueue(0).value();
    const MutableByteSpan bytes = std::as_writable_bytes(std::span(loaded));
    EXPECT_TRUE(queue->CopyToHost({memory->address(), 1, size}, bytes).ok());
    EXPECT_TRUE(queue->Wait(queue->Mark().value()).ok());
    return loaded;
  }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
  std::vector<float> state_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(CudaLoadTest, ADenseTensorIsLoadedAndVerifiedOnTheDevice) {
  const bool verify = runtime_->CheckDigests(0).ok();
  for (const int threads : {1, 3}) {
    std::uint64_t verified = 0;
    EXPECT_EQ(Load({}, kBytes, {.threads = threads, .verify_on_device = verify}, verified), state_);
    EXPECT_EQ(verified, verify ? kBytes : 0);
  }
}

TEST_F(CudaLoadTest, RowsApartAndTransposed) {
  std::uint64_t verified = 0;
  const auto apart = Load({1024 * 4, 4}, kRows * 1024 * 4, {}, verified);
  const auto transposed = Load({4, kRows * 4}, kBytes, {.threads = 2}, verified);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    for (std::uint64_t column = 0; column < kColumns; ++column) {
      const float value = state_[row * kColumns + column];
      ASSERT_EQ(apart[row * 1024 + column], value);
      ASSERT_EQ(transposed[column * kRows + row], value);
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
