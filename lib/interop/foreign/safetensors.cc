// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/safetensors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "lib/interop/base64.h"
#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/node.h"
#include "lib/safetensors/json_text.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr const char* kTree = "sealpoint.tree";
constexpr std::string_view kRankValues = "sealpoint.tree.rank";
constexpr std::string_view kObjectPrefix = "sealpoint.object.";
constexpr const char* kForeign = "safetensors.metadata";
constexpr const char* kSharding = "DCP_SHARDING_INFO";
constexpr std::string_view kSavedBy = "DCP_VERSION";

ForeignNode ParseText(std::string_view text, const std::string& path, const std::string& object) {
  auto node = ParseNode(text);
  if (node) return *std::move(node);
  throw Failure{
      Status(Code::kCorrupt, "text is malformed, expected JSON").AtPath(path).AtObject(object)};
}

ForeignObject ObjectOf(const std::string& text, const std::string& path, const std::string& name) {
  const ForeignNode node = ParseText(text, path, name);
  const ForeignNode::List* const pair = node.if_list();
  const bool is_pair = pair != nullptr && pair->size() == 2 && pair->front().if_text() != nullptr &&
                       pair->back().if_text() != nullptr;
  auto bytes = is_pair ? interop::DecodeBase64(*pair->back().if_text()) : std::nullopt;
  if (!bytes) {
    throw Failure{Status(Code::kCorrupt, "an object in __metadata__ is malformed")
                      .AtPath(path)
                      .AtObject(name)};
  }
  return {*pair->front().if_text(), *std::move(bytes)};
}

// What ranks have of their own is stored as objects.
void TakeRankValues(ForeignCheckpoint& state) {
  for (;;) {
    const auto found = state.objects.find(StrCat(kRankValues, state.rank_values.size()));
    if (found == state.objects.end()) return;
    const Bytes& bytes = found->second.bytes;
    ForeignNode values = ParseText({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                   state.path, found->first);
    if (values.if_object() == nullptr) {
      throw Failure{MakeError(Code::kCorrupt, "values of a rank are ", BriefOf(values),
                              ", expected a mapping")
                        .AtPath(state.path)
                        .AtObject(found->first)};
    }
    state.rank_values.push_back(std::move(values));
    state.objects.erase(found);
  }
}

void AddObjects(const SafetensorsModel& model, ForeignCheckpoint& state) {
  std::map<std::string, std::string> metadata;
  for (const SafetensorsFile& file : model.files()) {
    for (const auto& [key, value] : file.metadata) metadata[key] = value;
  }
  metadata.erase(std::string(kSharding));
  metadata.erase(std::string(kSavedBy));
  if (const auto tree = metadata.find(kTree); tree != metadata.end()) {
    state.tree = ParseText(tree->second, state.path, kTree);
    metadata.erase(tree);
  }
  std::map<std::string, std::string> others;
  for (auto& [key, value] : metadata) {
    if (!key.starts_with(kObjectPrefix)) {
      others.emplace(key, std::move(value));
      continue;
    }
    const std::string name = key.substr(kObjectPrefix.size());
    state.objects[name] = ObjectOf(value, state.path, name);
  }
  TakeRankValues(state);
  const bool is_usual =
      others.size() == 1 &&
      *others.begin() == std::pair<const std::string, std::string>("format", "pt");
  if (others.empty() || is_usual) return;
  std::string text;
  for (const auto& [key, value] : others) {
    text += text.empty() ? "{" : ", ";
    safetensors::AppendJson(text, key);
    text += ": ";
    safetensors::AppendJson(text, value);
  }
  text += '}';
  const auto bytes = std::as_bytes(std::span(text));
  state.objects[kForeign] = {"application/json", Bytes(bytes.begin(), bytes.end())};
}

std::unique_ptr<SafetensorsModel> OpenModel(const std::string& path, const SourceFiles& files) {
  return Take(SafetensorsModel::Open(
      path, {.storage = files.storage(),
             .allow_missing = files.options().allow_missing,
             .metadata_memory_bytes = files.options().metadata_memory_bytes}));
}

ForeignCheckpoint StateOf(const SafetensorsModel& model, const std::string& path,
                          SourceFiles& files) {
  ForeignCheckpoint state{.format = model.is_directory() ? "hf" : "safetensors",
                          .path = path,
                          .digest = "none: safetensors has no digests"};
  ForeignNode::Members leaves;
  for (const SafetensorsTensor& tensor : model.tensors()) {
    ForeignTensor& described = state.tensors[tensor.name];
    described.dtype = tensor.dtype;
    described.shape = tensor.shape;
    for (const SafetensorsPart& part : tensor.parts) {
      const std::string& name = model.files()[part.file].name;
      described.parts.push_back(
          {.box = part.box,
           .file = files.NumberOf(model.is_directory() ? JoinPath(path, name) : path),
           .entry_begin = part.offset,
           .entry_size = *ElementCount(part.box.extent) * DTypeSizeBytes(tensor.dtype),
           .entry_name = tensor.name});
    }
    leaves.push_back({tensor.name, TensorNode(tensor.name)});
  }
  state.tree = MappingNode(std::move(leaves));
  AddObjects(model, state);
  AddFiles(model, files, state);
  state.missing = model.missing();
  for (const SafetensorsDuplicate& duplicate : model.duplicates()) {
    state.left_out.push_back({JoinPath(duplicate.file, duplicate.tensor), duplicate.raw_bytes,
                              "the index names another file for the tensor", false});
  }
  const bool is_sharded = model.index_name().empty() && model.is_directory() &&
                          std::ranges::any_of(model.files(), [](const SafetensorsFile& file) {
                            return std::ranges::any_of(file.metadata, [](const auto& entry) {
                              return entry.first == kSharding;
                            });
                          });
  if (is_sharded) {
    state.notes.emplace_back(
        "shapes cover only the existing parts: the format does not record whether a last part is "
        "missing");
  }
  return state;
}

}  // namespace

void AddFiles(const SafetensorsModel& model, SourceFiles& files, ForeignCheckpoint& state) {
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
                           entry.name == model.index_name() ? "index: the file of each tensor"
                                                            : "not part of the tensors, not read"});
  }
}

ForeignCheckpoint ReadSafetensorsAlone(const std::string& path, SourceFiles& files) {
  return StateOf(*OpenModel(path, files), path, files);
}

ForeignCheckpoint ReadSafetensors(const std::string& path, SourceFiles& files) {
  const std::unique_ptr<SafetensorsModel> model = OpenModel(path, files);
  ForeignCheckpoint state = StateOf(*model, path, files);
  if (model->is_directory()) {
    std::set<std::string> format_names = {model->index_name()};
    for (const SafetensorsFile& file : model->files()) {
      format_names.insert(file.name.substr(0, file.name.find('/')));
    }
    ReadBeside({.may_link = true, .index = model->index_name(), .format_names = format_names},
               files, state);
  }
  return state;
}

}  // namespace sealpoint::internal::foreign
