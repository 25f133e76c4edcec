// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_LOAD_LOAD_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_LOAD_LOAD_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::testing {

// A checkpoint "c" in memory whose reads are written down.
class LoadFixture : public ::testing::Test {
 protected:
  // Stores the container, damaged as a test likes, and opens it.
  void Open(const MiniSpec& spec, const std::function<void(MiniContainer&)>& damage = {}) {
    container_ = BuildMini(spec);
    if (damage) damage(container_);
    StoreFiles(*memory_, "c", container_.files);
    Reopen();
  }
  void Reopen(OpenOptions options = {}) {
    options.storage = storage_;
    checkpoint_ = Checkpoint::Open("c", std::move(options)).value();
    storage_->ClearLog();
  }

  // The tensor's region, read densely.
  Result<Bytes> ReadDense(const std::string& name, const Region& region,
                          const ReadOptions& options = {}) {
    const TensorInfo info = checkpoint_->FindTensor(name).value();
    Bytes out(region.element_count() * info.element_size);
    ReadRequest request;
    request.Add(name, region, MutableMemoryView::Host(out));
    auto report = checkpoint_->Load(request, LoadContract::Partial(), options);
    if (!report) return report.error();
    return out;
  }
  std::string BlobPath(int number) const { return "c/" + container_.blobs.at(number).name; }

  std::shared_ptr<Storage> memory_ = MemoryStorage();
  std::shared_ptr<ReadingStorage> storage_ = std::make_shared<ReadingStorage>(memory_);
  MiniContainer container_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_LOAD_LOAD_FIXTURE_H_
