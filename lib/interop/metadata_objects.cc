// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/metadata_objects.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/interop/base64.h"
#include "lib/safetensors/json_reader.h"
#include "lib/safetensors/json_text.h"

namespace sealpoint::internal::interop {
namespace {

constexpr std::string_view kTree = "sealpoint.tree";
constexpr std::string_view kTreeMediaType = "application/vnd.sealpoint.tree+json";
constexpr std::string_view kObjectPrefix = "sealpoint.object.";
// The metadata that others had written.
constexpr std::string_view kForeign = "safetensors.metadata";
constexpr std::string_view kForeignMediaType = "application/json";
// What programs for Hugging Face expect.
constexpr std::string_view kFormat = "format";
constexpr std::string_view kFormatValue = "pt";
// What torch's HuggingFaceStorageWriter has for itself.
constexpr std::string_view kDcpSharding = "DCP_SHARDING_INFO";
constexpr std::string_view kDcpVersion = "DCP_VERSION";
// The member of a node of the tree that says what it is.
constexpr std::string_view kKind = "$";

std::string TensorNode(std::string_view name) {
  std::string node = R"({"$":"tensor","name":)";
  safetensors::AppendJson(node, name);
  return node + "}";
}

// The tree of a state that is one mapping from names to tensors.
std::string FlatTree(const std::vector<std::string_view>& tensors) {
  // A mapping with this key has another form, so that it cannot be taken for a node.
  const bool has_kind = std::ranges::find(tensors, kKind) != tensors.end();
  std::string tree = has_kind ? R"({"$":"dict","items":[)" : "{";
  for (const std::string_view name : tensors) {
    if (name != tensors.front()) tree.push_back(',');
    if (has_kind) tree.push_back('[');
    safetensors::AppendJson(tree, name);
    tree.push_back(has_kind ? ',' : ':');
    tree.append(TensorNode(name));
    if (has_kind) tree.push_back(']');
  }
  return tree + (has_kind ? "]}" : "}");
}

// Whether a value is the node of the tensor of this name.
bool IsNodeOf(safetensors::JsonReader& reader, std::string_view name) {
  int right_count = 0;
  int count = 0;
  std::string key;
  std::string value;
  for (reader.BeginObject(); reader.NextKey(key); ++count) {
    reader.ReadString(value);
    right_count += (key == kKind && value == "tensor") || (key == "name" && value == name) ? 1 : 0;
  }
  return count == 2 && right_count == 2;
}

// Whether a tree says no more than the names of the tensors do.
bool IsFlatTree(std::string_view tree, const std::vector<std::string_view>& tensors) {
  if (tree == FlatTree(tensors)) return true;
  std::set<std::string> keys;
  std::string key;
  safetensors::JsonReader reader(tree);
  for (reader.BeginObject(); reader.NextKey(key);) {
    if (!IsNodeOf(reader, key)) return false;
    keys.insert(key);
  }
  reader.End();
  return reader.status().ok() && std::ranges::equal(keys, tensors);
}

Result<safetensors::StringPairs> ForeignOf(std::string_view text) {
  safetensors::StringPairs pairs;
  std::string key;
  safetensors::JsonReader reader(text);
  for (reader.BeginObject(); reader.NextKey(key);) {
    pairs.emplace_back(key, "");
    reader.ReadString(pairs.back().second);
  }
  reader.End();
  if (!safetensors::SortUnique(pairs)) reader.Fail("a key comes twice");
  if (!reader.status().ok()) return reader.status();
  return pairs;
}

std::string TextOfObject(const NamedObject& object) {
  std::string text = "[";
  safetensors::AppendJson(text, object.media_type, safetensors::JsonCharacters::kAscii);
  return StrCat(text, ", \"", EncodeBase64(object.bytes), "\"]");
}

Result<NamedObject> ObjectOf(std::string_view name, std::string_view text) {
  NamedObject object{.name = std::string(name), .media_type = {}, .bytes = {}};
  std::string data;
  safetensors::JsonReader reader(text);
  int count = 0;
  for (reader.BeginArray(); reader.NextElement(); ++count) {
    reader.ReadString(count == 0 ? object.media_type : data);
  }
  reader.End();
  std::optional<Bytes> bytes = DecodeBase64(data);
  if (!reader.status().ok() || count != 2 || !bytes) {
    return MakeError(Code::kCorrupt,
                     "object in __metadata__ is malformed, expected a media type and base64");
  }
  object.bytes = *std::move(bytes);
  return object;
}

NamedObject TextObject(std::string_view name, std::string_view media_type, std::string_view text) {
  const ByteSpan bytes = AsBytes(text);
  return {std::string(name), std::string(media_type), Bytes(bytes.begin(), bytes.end())};
}

Status CheckTree(std::string_view tree) {
  safetensors::JsonReader reader(tree);
  reader.Skip();
  reader.End();
  return Status(reader.status()).Prefixed("tree is malformed, expected JSON").AtObject(kTree);
}

}  // namespace

Result<safetensors::StringPairs> MetadataOfObjects(const std::vector<NamedObject>& objects,
                                                   const std::vector<std::string_view>& tensors) {
  safetensors::StringPairs metadata;
  std::map<std::string, std::size_t, std::less<>> positions;
  // A key that is there already keeps its place.
  const auto put = [&](std::string key, std::string value) {
    const auto [at, is_new] = positions.try_emplace(key, metadata.size());
    if (is_new) metadata.emplace_back(std::move(key), "");
    metadata[at->second].second = std::move(value);
  };
  put(std::string(kFormat), std::string(kFormatValue));
  std::string tree;
  for (const NamedObject& object : objects) {
    if (object.name == kTree) {
      tree = AsText(object.bytes);
    } else if (object.name == kForeign) {
      Result<safetensors::StringPairs> foreign = ForeignOf(AsText(object.bytes));
      if (!foreign.ok()) return std::move(foreign).error().AtObject(kForeign);
      for (auto& [key, value] : *foreign) put(std::move(key), std::move(value));
    } else {
      put(StrCat(kObjectPrefix, object.name), TextOfObject(object));
    }
  }
  if (!tree.empty() && !IsFlatTree(tree, tensors)) {
    SEALPOINT_RETURN_IF_ERROR(CheckTree(tree));
    put(std::string(kTree), std::move(tree));
  }
  return metadata;
}

Result<std::vector<NamedObject>> ObjectsOfMetadata(const safetensors::StringPairs& metadata,
                                                   const std::vector<std::string_view>& tensors) {
  std::map<std::string_view, std::string_view> last;
  for (const auto& [key, value] : metadata) last[key] = value;
  std::vector<NamedObject> objects;
  std::string foreign;
  bool is_usual = true;
  std::string tree = FlatTree(tensors);
  for (const auto& [key, value] : last) {
    if (key == kTree) {
      SEALPOINT_RETURN_IF_ERROR(CheckTree(value));
      tree = value;
    } else if (key.starts_with(kObjectPrefix)) {
      const std::string_view name = key.substr(kObjectPrefix.size());
      Result<NamedObject> object = ObjectOf(name, value);
      if (!object.ok()) return std::move(object).error().AtObject(name);
      objects.push_back(*std::move(object));
    } else if (key != kDcpSharding && key != kDcpVersion) {
      is_usual &= key == kFormat && value == kFormatValue;
      foreign.append(foreign.empty() ? "{" : ", ");
      safetensors::AppendJson(foreign, key);
      foreign.append(": ");
      safetensors::AppendJson(foreign, value);
    }
  }
  if (!is_usual) {
    objects.push_back(TextObject(kForeign, kForeignMediaType, foreign + "}"));
  }
  objects.push_back(TextObject(kTree, kTreeMediaType, tree));
  return objects;
}

}  // namespace sealpoint::internal::interop
