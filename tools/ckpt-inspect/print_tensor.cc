// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/ckpt-inspect/print.h"
#include "tools/ckpt-inspect/select.h"
#include "tools/ckpt-inspect/stored.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

Status PrintTensor(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  const Result<StoredChunks> stored = checkpoint.TensorChunks(tensor.name);
  if (!stored) return stored.error();
  const Result<std::vector<ShardInfo>> shards = checkpoint.Shards(tensor.name);
  if (!shards) return shards.error();
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
  PrintFact("shards", fmt::format("{}", shards->size()));
  if (shards->empty()) return {};
  std::size_t width = 0;
  for (const ShardInfo& shard : *shards) width = std::max(width, Width(shard.region.ToString()));
  Print("\n{}\n", Bold(fmt::format("{:<{}}  {}", "region", width, "blob")));
  for (const ShardInfo& shard : *shards) {
    Print("{:<{}}  {}\n", shard.region.ToString(), width, shard.blob.ToHex());
  }
  return {};
}

Status WriteTensorWithShards(const Checkpoint& checkpoint, const TensorInfo& tensor,
                             JsonWriter& json) {
  const Result<StoredChunks> stored = checkpoint.TensorChunks(tensor.name);
  if (!stored) return stored.error();
  const Result<std::vector<ShardInfo>> shards = checkpoint.Shards(tensor.name);
  if (!shards) return shards.error();
  json.BeginObject();
  WriteTensor(json, tensor);
  WriteStored(json, *stored);
  json.BeginArray("shards");
  for (const ShardInfo& shard : *shards) {
    json.Element({{"offset", shard.region.box.offset},
                  {"extent", shard.region.box.extent},
                  {"run", {shard.region.run.begin, shard.region.run.end}},
                  {"blob", shard.blob.ToHex()}});
  }
  json.End();
  json.End();
  return {};
}

}  // namespace

Status PrintTensors(const Checkpoint& checkpoint, const std::vector<std::string>& patterns) {
  const Result<std::vector<TensorInfo>> tensors = SelectTensors(checkpoint, patterns);
  if (!tensors) return tensors.error();
  for (const TensorInfo& tensor : *tensors) {
    if (&tensor != &tensors->front()) Print("\n");
    if (Status status = PrintTensor(checkpoint, tensor); !status.ok()) return status;
  }
  return {};
}

Status PrintTensorsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json) {
  const Result<std::vector<TensorInfo>> tensors = SelectTensors(checkpoint, patterns);
  if (!tensors) return tensors.error();
  json.BeginObject();
  json.BeginArray("tensors");
  for (const TensorInfo& tensor : *tensors) {
    if (Status status = WriteTensorWithShards(checkpoint, tensor, json); !status.ok()) {
      return status;
    }
  }
  json.End();
  json.End();
  return {};
}

}  // namespace sealpoint::tools
