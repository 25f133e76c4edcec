// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/safetensors.h"

#include <algorithm>
#include <map>
#include <set>

#include "tools/ckpt-inspect/foreign/beside.h"
#include "tools/ckpt-inspect/foreign/failure.h"
#include "tools/ckpt-inspect/foreign/formats.h"

namespace sealpoint::tools {
namespace {

constexpr const char* kTree = "sealpoint.tree";
constexpr std::string_view kRankValues = "sealpoint.tree.rank";
constexpr std::string_view kObjectPrefix = "sealpoint.object.";
constexpr const char* kForeign = "safetensors.metadata";
constexpr const char* kSharding = "DCP_SHARDING_INFO";
constexpr int kJsonDepthMax = 200;

Json ParseText(const std::string& text, const std::string& path, const std::string& object) {
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kJsonDepthMax) Fail(Code::kCorrupt, path, "values are nested too deeply");
      return true;
    });
  } catch (const Json::exception&) {
    throw Failure{Status(Code::kCorrupt, "it is no JSON").AtPath(path).AtObject(object)};
  }
}

// Of base64 with padding.
std::uint64_t DecodedSize(const std::string& text) {
  const auto padding = static_cast<std::uint64_t>(std::ranges::count(text, '='));
  return text.size() / 4 * 3 - padding;
}

void AddObjects(const SafetensorsModel& model, ForeignState& state) {
  std::map<std::string, std::string> metadata;
  for (const SafetensorsFile& file : model.files()) {
    for (const auto& [key, value] : file.metadata) metadata[key] = value;
  }
  metadata.erase(kSharding);
  metadata.erase("DCP_VERSION");
  if (const auto tree = metadata.find(kTree); tree != metadata.end()) {
    state.tree = ParseText(tree->second, state.path, kTree);
    metadata.erase(tree);
  }
  Json foreign = Json::object();
  for (const auto& [key, value] : metadata) {
    if (!key.starts_with(kObjectPrefix)) {
      foreign[key] = value;
      continue;
    }
    const std::string name = key.substr(kObjectPrefix.size());
    const Json object = ParseText(value, state.path, name);
    if (!object.is_array() || object.size() != 2 || !object[0].is_string() ||
        !object[1].is_string()) {
      throw Failure{Status(Code::kCorrupt, "an object in __metadata__ is malformed")
                        .AtPath(state.path)
                        .AtObject(name)};
    }
    // The values of ranks are part of the state.
    if (name.starts_with(kRankValues)) continue;
    state.objects[name] = {object[0].get<std::string>(), DecodedSize(object[1].get<std::string>())};
  }
  if (foreign.empty() || foreign == Json{{"format", "pt"}}) return;
  std::string text;
  for (const auto& [key, value] : foreign.items()) {
    text += text.empty() ? "{" : ", ";
    text += Json(key).dump() + ": " + value.dump();
  }
  state.objects[kForeign] = {"application/json", text.size() + 1};
}

void AddFiles(const SafetensorsModel& model, const SourceFiles& files, ForeignState& state) {
  if (!model.is_directory()) {
    state.files.push_back({model.files().front().name, model.files().front().size_bytes,
                           "safetensors: a header of JSON, then the tensors"});
    return;
  }
  std::set<std::string> parts;
  for (const SafetensorsFile& file : model.files()) {
    parts.insert(file.name);
    state.files.push_back({file.name, file.size_bytes, "safetensors: tensors"});
  }
  for (const SourceEntry& entry : files.List(state.path)) {
    if (entry.name.starts_with('.') || parts.contains(entry.name)) continue;
    state.files.push_back({entry.name, entry.size,
                           entry.name == model.index_name() ? "index: which file has which tensor"
                                                            : "not part of the tensors, not read"});
  }
}

}  // namespace

ForeignState ReadSafetensors(const std::string& path, SourceFiles& files) {
  auto model = SafetensorsModel::Open(path, {.storage = files.storage()});
  if (!model.ok()) throw Failure{std::move(model).error()};
  ForeignState state{.format = (*model)->is_directory() ? "hf" : "safetensors",
                     .path = path,
                     .digest = "none: safetensors has no digests"};
  std::vector<std::pair<std::string, Json>> leaves;
  for (const SafetensorsTensor& tensor : (*model)->tensors()) {
    state.tensors[tensor.name] = {tensor.dtype, tensor.shape, tensor.parts.size()};
    leaves.emplace_back(tensor.name, TensorNode(tensor.name));
  }
  state.tree = MappingNode(std::move(leaves));
  AddObjects(**model, state);
  AddFiles(**model, files, state);
  const bool is_sharded = (*model)->index_name().empty() && (*model)->is_directory() &&
                          std::ranges::any_of((*model)->files(), [](const SafetensorsFile& file) {
                            return std::ranges::any_of(file.metadata, [](const auto& entry) {
                              return entry.first == kSharding;
                            });
                          });
  if (is_sharded) {
    state.notes.emplace_back(
        "shapes are those of the parts that are there: the format does not say if a last part is "
        "missing");
  }
  if ((*model)->is_directory()) ReadBeside(true, files, state);
  return state;
}

}  // namespace sealpoint::tools
