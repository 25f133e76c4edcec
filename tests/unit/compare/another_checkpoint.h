// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_COMPARE_ANOTHER_CHECKPOINT_H_
#define SEALPOINT_TESTS_UNIT_COMPARE_ANOTHER_CHECKPOINT_H_

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"

namespace sealpoint::testing {

// One that Checkpoint::Open did not make: nothing of it may be asked.
class AnotherCheckpoint final : public Checkpoint {
 public:
  ByteSpan marker_bytes() const override { std::abort(); }
  ByteSpan index_bytes() const override { std::abort(); }
  const std::string& path() const override { std::abort(); }
  AttemptId attempt() const override { std::abort(); }
  AttemptId parent() const override { std::abort(); }
  std::uint64_t sequence() const override { std::abort(); }
  std::uint64_t step() const override { std::abort(); }
  std::uint64_t created_unix_ns() const override { std::abort(); }
  std::uint64_t raw_bytes() const override { std::abort(); }
  std::vector<std::pair<std::string, std::uint32_t>> mesh() const override { std::abort(); }
  std::vector<std::pair<std::string, std::string>> provenance() const override { std::abort(); }
  Attributes attributes() const override { std::abort(); }
  std::vector<BlobInfo> blobs() const override { std::abort(); }
  std::optional<BaseRef> base() const override { return {}; }
  BaseRef as_base() const override { return {}; }
  std::size_t tensor_count() const override { std::abort(); }
  TensorInfo tensor(std::size_t) const override { std::abort(); }
  std::string_view tensor_name(std::size_t) const override { std::abort(); }
  std::optional<TensorInfo> FindTensor(std::string_view) const override { std::abort(); }
  std::vector<TensorInfo> TensorsWithPrefix(std::string_view) const override { std::abort(); }
  Result<std::vector<TensorInfo>> MatchTensors(const std::vector<std::string>&) const override {
    std::abort();
  }
  Result<std::vector<std::size_t>> MatchTensorNumbers(
      const std::vector<std::string>&) const override {
    std::abort();
  }
  std::size_t object_count() const override { std::abort(); }
  ObjectInfo object(std::size_t) const override { std::abort(); }
  std::optional<ObjectInfo> FindObject(std::string_view) const override { std::abort(); }
  Result<std::vector<ObjectInfo>> MatchObjects(const std::vector<std::string>&) const override {
    std::abort();
  }
  Result<StoredChunks> TensorChunks(std::string_view) const override { std::abort(); }
  Result<std::vector<ShardInfo>> Shards(std::string_view) const override { std::abort(); }
  Status ForEachShard(std::string_view,
                      const std::function<void(const ShardInfo&)>&) const override {
    std::abort();
  }
  Result<ReadPlan> Plan(const ReadRequest&, const LoadContract&) const override { std::abort(); }
  Result<LoadReport> Read(const ReadPlan&, const ReadOptions&) const override { std::abort(); }
  Result<Bytes> ReadObject(std::string_view) const override { std::abort(); }
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_COMPARE_ANOTHER_CHECKPOINT_H_
