// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/print.h"
#include "tools/ckpt/ls/stored.h"
#include "tools/common/json.h"

namespace sealpoint::tools::ls {
namespace {

Status WriteTensors(const Checkpoint& checkpoint, bool is_long, JsonWriter& json) {
  json.BeginArray("tensors");
  for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) {
    const TensorInfo tensor = checkpoint.tensor(i);
    json.BeginObject();
    WriteTensor(json, tensor);
    if (is_long) {
      const Result<StoredChunks> stored = checkpoint.TensorChunks(tensor.name);
      if (!stored) return stored.error();
      WriteStored(json, *stored);
    }
    json.End();
  }
  json.End();
  return {};
}

Status WriteContent(const CheckpointView& view, bool is_long, JsonWriter& json) {
  const Checkpoint& checkpoint = *view.checkpoint;
  json.Field("created_unix_ns", checkpoint.created_unix_ns());
  const std::optional<BaseRef> base = checkpoint.base();
  json.Field("base", !base ? Json()
                           : Json{{"attempt", IdToJson(base->attempt)},
                                  {"step", StepToJson(base->step)},
                                  {"depth", base->depth}});
  json.Field("raw_bytes", checkpoint.raw_bytes());
  json.BeginArray("mesh");
  for (const auto& [axis, size] : checkpoint.mesh()) {
    json.Element({{"axis", axis}, {"size", size}});
  }
  json.End();
  json.BeginObject("provenance");
  for (const auto& [key, value] : checkpoint.provenance()) json.Field(key, value);
  json.End();
  json.Field("attributes", AttributesToJson(checkpoint.attributes()));
  json.BeginArray("blobs");
  for (const BlobInfo& blob : checkpoint.blobs()) {
    json.Element({{"id", blob.id.ToHex()},
                  {"size_bytes", blob.file_size_bytes},
                  {"chunk_count", blob.chunk_count}});
  }
  json.End();
  if (Status status = WriteTensors(checkpoint, is_long, json); !status.ok()) return status;
  json.BeginArray("objects");
  for (std::size_t i = 0; i < checkpoint.object_count(); ++i) {
    WriteObject(json, checkpoint.object(i));
  }
  json.End();
  return {};
}

}  // namespace

void WriteTensor(JsonWriter& json, const TensorInfo& tensor) {
  json.Field("name", tensor.name);
  json.Field("dtype", std::string(DTypeName(tensor.dtype)));
  json.Field("dtype_id", static_cast<unsigned>(tensor.dtype));
  json.Field("element_size_bytes", tensor.element_size);
  json.Field("shape", tensor.shape);
  json.Field("raw_bytes", tensor.raw_bytes);
  json.Field("chunk_size_bytes", tensor.chunk_size_bytes);
  json.Field("shard_count", tensor.shard_count);
  json.BeginArray("placement");
  for (const std::string& placement : tensor.placement) json.Element(placement);
  json.End();
  json.Field("attributes", AttributesToJson(tensor.attributes));
}

Status PrintCheckpointJson(const CheckpointView& view, const Options& options, JsonWriter& json) {
  const VerifyReport& report = view.report;
  json.BeginObject();
  json.Field("path", report.path);
  json.Field("verdict", std::string(VerdictName(report.verdict)));
  json.Field("level", std::string(VerifyLevelName(report.level)));
  json.Field("violation_count", report.violation_count);
  json.BeginArray("violations");
  for (const Status& violation : report.violations) json.Element(StatusToJson(violation));
  json.End();
  json.BeginArray("notes");
  for (const std::string& note : report.notes) json.Element(note);
  json.End();
  json.Field("leftover_bytes", report.leftover_bytes);
  json.Field("step", StepToJson(report.step));
  json.Field("sequence", report.sequence);
  json.Field("attempt", IdToJson(report.attempt));
  json.Field("parent", IdToJson(report.parent));
  if (view.checkpoint) {
    if (Status status = WriteContent(view, options.is_long, json); !status.ok()) return status;
  }
  return {};
}

void PrintSeriesJson(const SeriesView& view, JsonWriter& json) {
  json.BeginObject();
  json.Field("path", view.path);
  json.BeginArray("checkpoints");
  for (std::size_t i = 0; i < view.listing.entries.size(); ++i) {
    const SeriesEntry& entry = view.listing.entries[i];
    Json one = {{"name", entry.name},
                {"verdict", std::string(VerdictName(entry.verdict))},
                {"is_void", entry.is_void},
                {"is_kept", entry.is_kept},
                {"is_base", entry.is_base},
                {"is_delta", entry.is_delta},
                {"step", StepToJson(entry.step)},
                {"sequence", entry.sequence},
                {"attempt", IdToJson(entry.attempt)},
                {"parent", IdToJson(entry.parent)},
                {"size_bytes", entry.size_bytes}};
    if (!entry.problem.ok()) one["error"] = StatusToJson(entry.problem);
    const auto& [state, upto] = view.corruption[i];
    if (!state.empty()) one["sdc_state"] = state;
    if (!upto.empty()) one["sdc_upto"] = upto;
    json.Element(one);
  }
  json.End();
  json.BeginArray("forks");
  for (const AttemptId& fork : view.listing.forks) json.Element(fork.ToHex());
  json.End();
  json.BeginArray("foreign");
  for (const std::string& name : view.listing.foreign) json.Element(name);
  json.End();
  json.Field("foreign_count", view.listing.foreign_count);
  json.BeginArray("unfinished");
  for (const UnfinishedFile& file : view.unfinished) {
    json.Element(
        {{"name", file.name}, {"upload_id", file.upload_id}, {"begun_unix_s", file.begun_unix_s}});
  }
  json.End();
  if (!view.unfinished_problem.ok()) {
    json.Field("unfinished_error", StatusToJson(view.unfinished_problem));
  }
}

}  // namespace sealpoint::tools::ls
