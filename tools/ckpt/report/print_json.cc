// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/print_json.h"

#include <cmath>

#include "tools/common/json.h"

namespace sealpoint::tools::report {
namespace {

Json Number(const std::optional<double>& value) { return value ? DoubleToJson(*value) : Json(); }

Json LayersToJson(const Step& step) {
  Json layers = Json::array();
  for (const auto& [name, values] : *step.values) {
    Json layer = {{"name", name},
                  {"value_count", values.value_count},
                  {"nan_count", values.nan_count},
                  {"infinity_count", values.infinity_count},
                  {"l2", Number(std::sqrt(values.squares))}};
    if (step.update_squares && step.update_squares->contains(name)) {
      layer["update_l2"] = Number(std::sqrt(step.update_squares->at(name)));
    }
    layers.push_back(layer);
  }
  return layers;
}

Json ToJson(const Step& step) {
  const SeriesEntry& entry = step.entry;
  Json json = {{"name", entry.name},
               {"verdict", VerdictName(step.verdict)},
               {"step", StepToJson(entry.step)},
               {"attempt", IdToJson(entry.attempt)},
               {"parent", IdToJson(entry.parent)},
               {"sequence", entry.sequence},
               {"is_void", entry.is_void},
               {"is_kept", entry.is_kept},
               {"is_fork", step.is_fork},
               {"created_unix_ns", step.is_open ? Json(step.created_unix_ns) : Json()},
               {"size_bytes", entry.size_bytes},
               {"added_bytes", step.added_bytes},
               {"save_seconds", Number(step.save_seconds)},
               {"interval_seconds", Number(step.interval_seconds)},
               {"violation_count", step.violation_count}};
  json["violations"] = Json::array();
  for (const Status& violation : step.violations) {
    json["violations"].push_back(StatusToJson(violation));
  }
  if (step.keep) {
    json["keep"] = *step.keep;
    json["reasons"] = step.reasons;
  }
  if (step.values) json["layers"] = LayersToJson(step);
  if (step.update_squares) json["update_since"] = step.update_since;
  if (!step.norms_problem.ok()) json["norms_error"] = StatusToJson(step.norms_problem);
  return json;
}

}  // namespace

void WriteJson(const ReportData& data, const std::string& out) {
  JsonWriter json;
  json.BeginObject();
  json.Field("path", data.path);
  json.Field("out", out.empty() ? Json() : Json(out));
  json.Field("level", VerifyLevelName(data.level));
  const Step* newest = data.NewestWhole();
  json.Field("newest", newest == nullptr ? Json() : Json(newest->entry.name));
  json.Field("size_bytes", data.size_bytes());
  json.Field("distinct_bytes", data.distinct_bytes());
  json.Field("depth", data.depth);
  json.Field("stats_path", data.store.empty() ? Json() : Json(data.store));
  if (!data.store_problem.ok()) json.Field("stats_error", StatusToJson(data.store_problem));
  if (data.has_rules) {
    json.Field("bytes_to_free", data.bytes_to_free);
    if (!data.retention_problem.ok()) {
      json.Field("retention_error", StatusToJson(data.retention_problem));
    }
  }
  json.BeginArray("checkpoints");
  for (const Step& step : data.steps) json.Element(ToJson(step));
  json.End();
  json.Field("foreign_count", data.foreign_count);
  json.Finish(data.exit_status());
}

}  // namespace sealpoint::tools::report
