// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/print.h"
#include "tools/common/json.h"

namespace sealpoint::tools {
namespace {

Json TensorToJson(const TensorInfo& tensor) {
  return {{"name", tensor.name},
          {"dtype", std::string(DTypeName(tensor.dtype))},
          {"dtype_id", static_cast<unsigned>(tensor.dtype)},
          {"element_size", tensor.element_size},
          {"shape", tensor.shape},
          {"bytes", tensor.raw_bytes},
          {"chunk_size", tensor.chunk_size_bytes},
          {"shard_count", tensor.shard_count},
          {"placement", tensor.placement}};
}

void AddContents(const CheckpointView& view, Json& json) {
  const Checkpoint& checkpoint = *view.checkpoint;
  json["created_unix_ns"] = checkpoint.created_unix_ns();
  json["raw_bytes"] = checkpoint.raw_bytes();
  json["mesh"] = Json::array();
  for (const auto& [axis, size] : checkpoint.mesh()) {
    json["mesh"].push_back({{"axis", axis}, {"size", size}});
  }
  json["provenance"] = Json::object();
  for (const auto& [key, value] : checkpoint.provenance()) json["provenance"][key] = value;
  json["blobs"] = Json::array();
  for (const BlobInfo& blob : checkpoint.blobs()) {
    json["blobs"].push_back({{"id", blob.id.ToHex()},
                             {"bytes", blob.file_size_bytes},
                             {"chunk_count", blob.chunk_count}});
  }
  json["tensors"] = Json::array();
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    json["tensors"].push_back(TensorToJson(tensor));
  }
  json["objects"] = Json::array();
  for (const ObjectInfo& object : checkpoint.objects()) {
    json["objects"].push_back(
        {{"name", object.name}, {"media_type", object.media_type}, {"bytes", object.size_bytes}});
  }
}

}  // namespace

void PrintCheckpointJson(const CheckpointView& view) {
  const VerifyReport& report = view.report;
  Json violations = Json::array();
  for (const Status& violation : report.violations) violations.push_back(StatusToJson(violation));
  Json json = {{"path", report.path},
               {"verdict", std::string(VerdictName(report.verdict))},
               {"level", std::string(VerifyLevelName(report.level))},
               {"violations", violations},
               {"notes", report.notes},
               {"leftover_bytes", report.leftover_bytes},
               {"step", StepToJson(report.step)},
               {"sequence", report.sequence},
               {"attempt", IdToJson(report.attempt)},
               {"parent", IdToJson(report.parent)}};
  if (view.checkpoint) AddContents(view, json);
  PrintJson(json);
}

Status PrintTensorJson(const Checkpoint& checkpoint, const std::string& name) {
  const std::optional<TensorInfo> tensor = checkpoint.FindTensor(name);
  const Result<std::vector<ShardInfo>> shards = checkpoint.Shards(name);
  if (!shards) return shards.error();
  Json json = TensorToJson(*tensor);
  json["shards"] = Json::array();
  for (const ShardInfo& shard : *shards) {
    json["shards"].push_back({{"offset", shard.region.box.offset},
                              {"extent", shard.region.box.extent},
                              {"run", {shard.region.run.begin, shard.region.run.end}},
                              {"blob", shard.blob.ToHex()}});
  }
  PrintJson(json);
  return {};
}

void PrintSeriesJson(const SeriesView& view) {
  Json entries = Json::array();
  for (const SeriesEntry& entry : view.listing.entries) {
    Json json = {{"name", entry.name},
                 {"verdict", std::string(VerdictName(entry.verdict))},
                 {"void", entry.is_void},
                 {"kept", entry.is_kept},
                 {"step", StepToJson(entry.step)},
                 {"sequence", entry.sequence},
                 {"attempt", IdToJson(entry.attempt)},
                 {"parent", IdToJson(entry.parent)},
                 {"bytes", entry.size_bytes}};
    if (!entry.problem.ok()) json["problem"] = StatusToJson(entry.problem);
    entries.push_back(json);
  }
  Json forks = Json::array();
  for (const AttemptId& fork : view.listing.forks) forks.push_back(fork.ToHex());
  PrintJson({{"series", view.path},
             {"checkpoints", entries},
             {"forks", forks},
             {"foreign", view.listing.foreign}});
}

}  // namespace sealpoint::tools
