// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ckpt/ls/print.h"
#include "tools/ckpt/ls/select.h"
#include "tools/ckpt/ls/stored.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

// Walks the shards twice, so that the columns fit and no list of them is made.
Status PrintShards(const Checkpoint& checkpoint, const std::string& tensor) {
  std::size_t width = std::string_view("region").size();
  Status status = checkpoint.ForEachShard(tensor, [&](const ShardInfo& shard) {
    width = std::max(width, shard.region.ToString().size());
  });
  if (!status.ok()) return status;
  Print("\n{}\n", Bold(fmt::format("{:<{}}  {}", "region", width, "blob")));
  return checkpoint.ForEachShard(tensor, [&](const ShardInfo& shard) {
    Print("{:<{}}  {}\n", shard.region.ToString(), width, shard.blob.ToHex());
  });
}

Status PrintTensor(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  const Result<StoredChunks> stored = checkpoint.TensorChunks(tensor.name);
  if (!stored) return stored.error();
  PrintFact("tensor", Printable(tensor.name));
  PrintFact("dtype",
            fmt::format("{}, {} per element", DTypeText(tensor), BytesText(tensor.element_size)));
  PrintFact("shape", ShapeToString(tensor.shape));
  PrintFact("bytes", BytesText(tensor.raw_bytes));
  PrintFact("stored", fmt::format("{} in {}, ratio {}", BytesText(stored->stored_bytes),
                                  FormatCount(stored->chunk_count, "chunk"), RatioText(*stored)));
  PrintFact("codec", CodecText(*stored));
  PrintFact("chunks of", FormatPowerOfTwo(tensor.chunk_size_bytes));
  for (const std::string& placement : tensor.placement) {
    PrintFact("placement", Printable(placement));
  }
  PrintAttributes(tensor.attributes);
  PrintFact("shards", fmt::format("{}", tensor.shard_count));
  return tensor.shard_count == 0 ? Status() : PrintShards(checkpoint, tensor.name);
}

Status WriteTensorWithShards(const Checkpoint& checkpoint, const TensorInfo& tensor,
                             JsonWriter& json) {
  const Result<StoredChunks> stored = checkpoint.TensorChunks(tensor.name);
  if (!stored) return stored.error();
  json.BeginObject();
  WriteTensor(json, tensor);
  WriteStored(json, *stored);
  json.BeginArray("shards");
  Status status = checkpoint.ForEachShard(tensor.name, [&](const ShardInfo& shard) {
    json.Element({{"offset", shard.region.box.offset},
                  {"extent", shard.region.box.extent},
                  {"run", {shard.region.run.begin, shard.region.run.end}},
                  {"blob", shard.blob.ToHex()}});
  });
  if (!status.ok()) return status;
  json.End();
  json.End();
  return {};
}

}  // namespace

void PrintAttributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes.values()) {
    PrintFact("attribute",
              fmt::format("{} = {}", Printable(name), Printable(AttributeToString(value))));
  }
}

Status PrintTensors(const Checkpoint& checkpoint, const std::vector<std::string>& patterns) {
  const Result<std::vector<std::size_t>> tensors = SelectTensors(checkpoint, patterns);
  if (!tensors) return tensors.error();
  for (const std::size_t tensor : *tensors) {
    if (tensor != tensors->front()) Print("\n");
    Status status = PrintTensor(checkpoint, checkpoint.tensor(tensor));
    if (!status.ok()) return status;
  }
  return {};
}

Status PrintTensorsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json) {
  const Result<std::vector<std::size_t>> tensors = SelectTensors(checkpoint, patterns);
  if (!tensors) return tensors.error();
  json.BeginObject();
  json.BeginArray("tensors");
  for (const std::size_t tensor : *tensors) {
    Status status = WriteTensorWithShards(checkpoint, checkpoint.tensor(tensor), json);
    if (!status.ok()) return status;
  }
  json.End();
  return {};
}

}  // namespace sealpoint::tools::ls
