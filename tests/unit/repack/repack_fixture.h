// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_REPACK_REPACK_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_REPACK_REPACK_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/repack.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class RepackTest : public ::testing::Test {
 protected:
  RepackOptions Small(RepackOptions options = {}) const {
    options.from_storage = storage_;
    if (!options.to_storage) options.to_storage = storage_;
    const int threads = options.threads == kThreadsAuto ? 2 : options.threads;
    options.memory_budget_bytes = static_cast<std::uint64_t>(threads) * kMiB;
    return options;
  }
  std::unique_ptr<Checkpoint> Open(const std::string& path) const {
    return OpenFrom(storage_, path);
  }
  // By kind and name, all that a reader is given.
  static std::map<std::string, Bytes> ContentOf(const Checkpoint& checkpoint) {
    std::map<std::string, Bytes> content;
    for (const TensorInfo& tensor : checkpoint.tensors()) {
      std::string key =
          tensor.name + " " + std::string(DTypeName(tensor.dtype)) + ShapeToString(tensor.shape);
      for (const std::string& placement : tensor.placement) key += " " + placement;
      content[key] = LoadWhole(checkpoint, tensor.name);
    }
    for (const ObjectInfo& object : checkpoint.objects()) {
      content[object.name + " " + object.media_type] = checkpoint.ReadObject(object.name).value();
    }
    return content;
  }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_REPACK_REPACK_FIXTURE_H_
