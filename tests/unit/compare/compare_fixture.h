// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_COMPARE_COMPARE_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_COMPARE_COMPARE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// One tensor in one shard.
inline MiniTensor WholeTensor(std::string name, DType dtype, const Shape& shape,
                              const Bytes& bytes) {
  const std::vector<Region> cut =
      bytes.empty() ? std::vector<Region>() : std::vector{Region::Whole(shape)};
  return CutTensor(std::move(name), dtype, shape, bytes, cut);
}

// Checkpoints in memory, whose reads can be made to fail.
class CompareFixture : public ::testing::Test {
 protected:
  std::unique_ptr<Checkpoint> Make(const std::string& path, const MiniSpec& spec,
                                   const std::function<void(MiniContainer&)>& damage = {}) {
    MiniContainer container = BuildMini(spec);
    if (damage) damage(container);
    StoreFiles(*memory_, path, container.files);
    return Checkpoint::Open(path, {.storage = storage_}).value();
  }
  // In a directory of its own.
  std::unique_ptr<Checkpoint> Make(const MiniSpec& spec) {
    return Make("c" + std::to_string(count_++), spec);
  }
  std::unique_ptr<Checkpoint> Make(MiniTensor tensor) {
    MiniSpec spec;
    spec.tensors.push_back(std::move(tensor));
    return Make(spec);
  }

  std::shared_ptr<Storage> memory_ = MemoryStorage();
  std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
  int count_ = 0;
};

// A bad chunk: who, where, and by which rule.
MATCHER_P2(IsBadChunk, tensor, path, std::string("is a bad chunk of ") + tensor) {
  *result_listener << "which is " << arg.ToString();
  const Place& place = arg.place();
  return arg.code() == Code::kCorrupt && place.rule == "R-CHK-02" && place.tensor == tensor &&
         place.path.starts_with(path) && place.offset.has_value();
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_COMPARE_COMPARE_FIXTURE_H_
