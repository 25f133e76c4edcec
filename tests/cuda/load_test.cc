// SPDX-License-Identifier: Apache-2.0
// A state that was saved from host memory is loaded to memory of a real device.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/process/temp_dir.h"

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
    Save(MemoryStorage(), "c");
  }
  void Save(const std::shared_ptr<Storage>& storage, const std::string& path) {
    const auto engine = Engine::Create({.storage = storage}).value();
    ASSERT_TRUE(storage->CreateDirectories(path).ok());
    const auto writer = BlobWriter::Create(*engine, path).value();
    ASSERT_TRUE(writer
                    ->Add({.name = "w", .dtype = DType::kF32, .shape = kShape},
                          Region::Whole(kShape), MemoryView::Host(state_))
                    .ok());
    ASSERT_TRUE(Commit(*storage, path, {}, writer->Finish().value()).ok());
    checkpoint_ = Checkpoint::Open(path, {.storage = storage}).value();
  }

  // What a load leaves in device memory that a long write on the user's stream came before.
  std::vector<float> Load(const std::vector<std::int64_t>& strides, std::uint64_t size,
                          const ReadOptions& options, LoadReport& loaded_report) {
    const auto memory = Allocate(size);
    const Bytes garbage(size, std::byte{0x55});
    for (int i = 0; i < 8; ++i) QueueWrite(stream_, garbage, memory->address());
    ReadRequest request;
    request.Add("w", MutableMemoryView::Cuda(memory->address(), size, 0, stream_, strides));
    const auto report = checkpoint_->Load(request, {}, options);
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    if (report.ok()) loaded_report = *report;
    std::vector<float> loaded(size / 4);
    const auto queue = runtime_->MakeQueue(0).value();
    const MutableByteSpan bytes = std::as_writable_bytes(std::span(loaded));
    EXPECT_TRUE(queue->CopyToHost({memory->address(), 1, size}, bytes).ok());
    EXPECT_TRUE(queue->Wait(queue->Mark().value()).ok());
    return loaded;
  }

  std::vector<float> state_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(CudaLoadTest, ADenseTensorIsLoadedAndVerifiedOnTheDevice) {
  const bool verify = runtime_->CheckKernels(0).ok();
  for (const int threads : {1, 3}) {
    LoadReport report;
    EXPECT_EQ(Load({}, kBytes, {.threads = threads, .verify_on_device = verify}, report), state_);
    EXPECT_EQ(report.bytes_verified_on_device, verify ? kBytes : 0);
  }
}

TEST_F(CudaLoadTest, RowsApartAndTransposed) {
  LoadReport report;
  const auto apart = Load({1024 * 4, 4}, kRows * 1024 * 4, {}, report);
  const auto transposed = Load({4, kRows * 4}, kBytes, {.threads = 2}, report);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    for (std::uint64_t column = 0; column < kColumns; ++column) {
      const float value = state_[row * kColumns + column];
      ASSERT_EQ(apart[row * 1024 + column], value);
      ASSERT_EQ(transposed[column * kRows + row], value);
    }
  }
}

// Why a device cannot read this checkpoint's blob by itself, or success.
Status CheckDirectReads(internal::device::DeviceRuntime& runtime, const Directory& directory) {
  const auto queue = runtime.MakeQueue(0).value();
  SEALPOINT_RETURN_IF_ERROR(runtime.CheckKernels(0));
  SEALPOINT_RETURN_IF_ERROR(runtime.CheckFiles());
  for (const EntryInfo& entry : directory.List().value()) {
    if (!entry.name.ends_with(".blob")) continue;
    const auto file = std::move(directory.OpenForRead(entry.name, IoMode::kDirect)).value();
    if (!file->is_direct()) return internal::MakeError(Code::kUnsupported, "no direct I/O");
    return runtime.OpenFile(*file->descriptor()).status();
  }
  return internal::MakeError(Code::kInternal, "no blob");
}

TEST_F(CudaLoadTest, ADeviceReadsTheFileByItselfWhereItCan) {
  const TempDir temp;
  Save(PosixStorage(), temp / "c");
  const auto directory = PosixStorage()->OpenDirectory(temp / "c").value();
  const Status offered = CheckDirectReads(*runtime_, *directory);
  LoadReport report;
  EXPECT_EQ(Load({}, kBytes, {.threads = 2, .gpudirect_storage = true}, report), state_);
  EXPECT_EQ(report.bytes_by_gpudirect_storage, offered.ok() ? kBytes : 0);
  if (!offered.ok()) GTEST_SKIP() << "no GPUDirect Storage: " << offered.ToString();
}

}  // namespace
}  // namespace sealpoint::testing
