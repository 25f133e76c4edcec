// SPDX-License-Identifier: Apache-2.0
// How fast a load to device memory is, beside the slower of link and storage: one pinned copy of
// the same bytes to the device, and plain direct reads of the same file into pinned memory, on as
// many threads. All three in each round; printed, and checked as the design says.
// SEALPOINT_CUDA_RATE_MIB: the size, 1024 by default. SEALPOINT_CUDA_LOAD_FOLDER: where the
// checkpoint is written, a temporary folder by default. SEALPOINT_CUDA_LOAD_THREADS: 4 by default.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/pipeline/thread_pool.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "tests/cuda/cuda_rate_fixture.h"
#include "tests/support/process/seconds.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::testing {
namespace {

constexpr int kRounds = 11;
constexpr std::uint64_t kPieceBytes = 8 * kMiB;

class CudaLoadRateTest : public CudaRateFixture {
 protected:
  void SetUp() override {
    CudaRateFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    threads_ = std::stoi(Setting("SEALPOINT_CUDA_LOAD_THREADS", "4"));
    path_ = Setting("SEALPOINT_CUDA_LOAD_FOLDER", temp_.path()) + "/load-rate";
    for (std::size_t i = 0; i < host_.size(); i += 61) host_[i] = static_cast<std::byte>(i);
    Save();
    checkpoint_ = Checkpoint::Open(path_, {.direct_io = true}).value();
    const std::string blob = checkpoint_->blobs().at(0).id.ToHex() + ".blob";
    file_ = storage_->OpenDirectory(path_).value()->OpenForRead(blob, IoMode::kDirect).value();
  }
  void TearDown() override {
    file_.reset();
    if (!path_.empty()) std::filesystem::remove_all(path_);
    CudaRateFixture::TearDown();
  }

  void Save() const {
    const auto engine = Engine::Create().value();
    ASSERT_TRUE(storage_->CreateDirectories(path_).ok());
    const auto writer = BlobWriter::Create(*engine, path_).value();
    const TensorSpec tensor{.name = "w", .dtype = DType::kUInt8, .shape = {size_}};
    ASSERT_TRUE(writer->Add(tensor, Region::Whole(tensor.shape), MemoryView::Host(host_)).ok());
    ASSERT_TRUE(Commit(*storage_, path_, {}, writer->Finish().value()).ok());
  }
  void Copy() const {
    ASSERT_TRUE(queue_->CopyToDevice(host_, {memory_->address(), 1, size_}).ok());
    ASSERT_TRUE(queue_->Wait(queue_->Mark().value()).ok());
  }
  // The file holds a little more than the bytes; as many of them are read.
  void ReadPlainly() const {
    const Status status =
        internal::pipeline::ParallelFor(threads_, size_ / kPieceBytes, [&](int, std::size_t i) {
          return file_->ReadAt(i * kPieceBytes, host_.subspan(i * kPieceBytes, kPieceBytes));
        });
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void Load(bool verify_on_device) const {
    ReadRequest request;
    request.Add("w", MutableMemoryView::Cuda(memory_->address(), size_, 0, nullptr));
    const auto report =
        checkpoint_->Load(request, {}, {.threads = threads_, .verify_on_device = verify_on_device});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
  }

  // The median over rounds of the load's rate by that of the slower of link and storage.
  double MedianRatio(bool verify_on_device) const {
    Load(verify_on_device);  // memory and kernels are made in the first round
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round) {
      const double link = SecondsOf([this] { Copy(); });
      const double storage = SecondsOf([this] { ReadPlainly(); });
      const double load = SecondsOf([&] { Load(verify_on_device); });
      ratios.push_back(std::max(link, storage) / load);
      const auto rate = [this](double seconds) {
        return static_cast<double>(size_) / seconds / 1e9;
      };
      std::printf("link %.1f GB/s, storage %.1f GB/s, load %.1f GB/s\n", rate(link), rate(storage),
                  rate(load));
    }
    std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
    std::printf("load to the device%s: %.3f of the slower of link and storage\n",
                verify_on_device ? " with digests there" : "", ratios[kRounds / 2]);
    return ratios[kRounds / 2];
  }

  const TempDir temp_;
  const std::shared_ptr<Storage> storage_ = PosixStorage();
  int threads_ = 1;
  std::string path_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<ReadableFile> file_;
};

TEST_F(CudaLoadRateTest, LoadsAtTheRateOfTheSlowerOfLinkAndStorage) {
  EXPECT_GE(MedianRatio(false), 0.9);
}

// Printed only: digests take device memory's own bandwidth.
TEST_F(CudaLoadRateTest, LoadsAndVerifiesOnTheDevice) {
  const Status offered = runtime_->CheckKernels(0);
  if (!offered.ok()) GTEST_SKIP() << offered.ToString();
  EXPECT_GT(MedianRatio(true), 0);
}

}  // namespace
}  // namespace sealpoint::testing
