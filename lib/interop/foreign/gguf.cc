// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/gguf_header.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/parts.h"
#include "lib/safetensors/json_text.h"
#include "lib/storage/path.h"

// Models of llama.cpp: one file, or a split one: model-00001-of-00003.gguf, … The first file of a
// split model has all keys; keys that begin with "split." describe the division.

namespace sealpoint::internal::foreign {
namespace {

constexpr std::string_view kEnding = ".gguf";
constexpr std::string_view kObject = "gguf.metadata";
constexpr std::string_view kSplit = "split.";
constexpr std::string_view kSplitCount = "split.count";

bool IsGgufFile(const SourceEntry& entry) {
  return entry.is_file && !entry.name.starts_with('.') && entry.name.ends_with(kEnding);
}

// The names of all files of the model that has a file of this name.
std::vector<std::string> NamesOfModel(const std::string& name) {
  constexpr std::string_view kForm = "-#####-of-#####.gguf";
  constexpr std::size_t kDigits = 5;
  const std::size_t prefix = name.size() - std::min(name.size(), kForm.size());
  const bool is_split = std::ranges::equal(name.substr(prefix), kForm, [](char c, char form) {
    return form == '#' ? c >= '0' && c <= '9' : c == form;
  });
  if (!is_split) return {name};
  const std::string digits = name.substr(name.size() - kEnding.size() - kDigits, kDigits);
  std::vector<std::string> names;
  for (std::uint64_t i = 1; i <= std::stoul(digits); ++i) {
    names.push_back(
        StrCat(name.substr(0, prefix), "-", Padded(i, kDigits), "-of-", digits, kEnding));
  }
  return std::ranges::find(names, name) == names.end() ? std::vector{name} : names;
}

const GgufKey* FindKey(const std::vector<GgufKey>& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &GgufKey::name);
  return found == keys.end() ? nullptr : &*found;
}

class GgufModel {
 public:
  GgufModel(const std::string& path, const std::string& directory, SourceFiles& files)
      : files_(files), directory_(directory) {
    state_.format = "gguf";
    state_.path = path;
    state_.digest = "none: GGUF has no digests";
  }

  ForeignCheckpoint Read(const std::vector<std::string>& names) {
    if (names.size() > 1) CheckNames(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto file = files_.Open(JoinPath(directory_, names[i]));
      GgufHeader header = ReadGgufHeader(*file);
      CheckSplit(header, i, names.size(), file->path());
      state_.files.push_back({names[i], file->size(),
                              StrCat("GGUF version ", header.version, ": ", header.keys.size(),
                                     " keys, then the tensors")});
      AddTensors(std::move(header.tensors), *file);
      AddKeys(std::move(header.keys), i, file->path());
    }
    CheckCount(names);
    state_.tree = MappingNode(std::move(leaves_));
    AddMetadata();
    return std::move(state_);
  }

 private:
  void CheckNames(const std::vector<std::string>& names) {
    std::set<std::string> found;
    for (const SourceEntry& entry : files_.List(directory_)) {
      if (IsGgufFile(entry)) found.insert(entry.name);
    }
    std::uint64_t stored = 0;
    for (const std::string& name : names) {
      if (!found.contains(name)) {
        Fail(Code::kIncomplete, directory_, "the directory lacks ", Printable(name), ", one of ",
             names.size(), " files of a model");
      }
      stored = CappedAdd(stored, files_.Open(JoinPath(directory_, name))->size());
    }
    files_.budget().Allow(stored);
  }

  static void Expect(const std::vector<GgufKey>& keys, std::string_view name, std::string value,
                     const std::string& path) {
    const GgufKey* const key = FindKey(keys, name);
    if (key != nullptr && key->value == value) return;
    Fail(Code::kCorrupt, path, name, " is ", key != nullptr ? key->value : "missing", ", expected ",
         value);
  }

  void CheckSplit(const GgufHeader& header, std::size_t number, std::size_t count,
                  const std::string& path) const {
    if (count > 1) {
      Expect(header.keys, kSplitCount, StrCat(R"(["uint16", )", count, "]"), path);
      Expect(header.keys, "split.no", StrCat(R"(["uint16", )", number, "]"), path);
      return;
    }
    const GgufKey* const declared = FindKey(header.keys, kSplitCount);
    if (declared == nullptr || files_.options().allow_part) return;
    if (declared->value == R"(["uint16", 1])" || declared->value == R"(["uint16", 0])") return;
    Fail(Code::kUnsupported, path, "one of several files of a model (", kSplitCount, " is ",
         declared->value,
         "), expected a name such as model-00001-of-00003.gguf, beside the others; "
         "--allow-part (allow_part) converts it alone");
  }

  // Compares the number of tensors of a split model.
  void CheckCount(const std::vector<std::string>& names) const {
    if (names.size() == 1) return;
    Expect(split_, "split.tensors.count", StrCat(R"(["int32", )", state_.tensors.size(), "]"),
           JoinPath(directory_, names.front()));
  }

  void AddTensors(std::vector<GgufTensor> tensors, const SourceFile& file) {
    for (GgufTensor& tensor : tensors) {
      const auto [at, is_new] = state_.tensors.try_emplace(tensor.name);
      if (!is_new)
        FailAt(Code::kCorrupt, file.path(), tensor.name,
               "another file of the model has the tensor, too");
      ForeignTensor& described = at->second;
      described.dtype = tensor.type->dtype;
      if (tensor.type->block_elements > 1) described.block_type = tensor.type->name;
      if (tensor.size > 0) {
        described.parts.push_back({.box = {Shape(tensor.shape.size()), tensor.shape},
                                   .file = file.number(),
                                   .entry_begin = tensor.begin,
                                   .entry_size = tensor.size,
                                   .entry_name = tensor.name});
      }
      described.shape = std::move(tensor.shape);
      if (!types_.empty()) types_ += ", ";
      safetensors::AppendJson(types_, tensor.name);
      types_ += StrCat(": \"", tensor.type->name, "\"");
      leaves_.push_back({tensor.name, TensorNode(tensor.name)});
    }
  }

  void AddKeys(std::vector<GgufKey> keys, std::size_t number, const std::string& path) {
    for (GgufKey& key : keys) {
      if (key.name.starts_with(kSplit)) {
        if (number == 0) split_.push_back(std::move(key));
        continue;
      }
      if (number == 0) {
        keys_.push_back(std::move(key));
        continue;
      }
      const GgufKey* const first = FindKey(keys_, key.name);
      if (first != nullptr && first->value == key.value) continue;
      Fail(Code::kUnsupported, path, "key ", Printable(key.name),
           " is not in the first file of the model, or has another value there");
    }
  }

  void AddMetadata() {
    std::string text = "{\"keys\": {";
    for (const GgufKey& key : keys_) {
      if (&key != &keys_.front()) text += ", ";
      safetensors::AppendJson(text, key.name);
      text += ": " + key.value;
    }
    text += "}, \"types\": {" + types_ + "}}";
    const auto bytes = std::as_bytes(std::span(text));
    state_.objects[std::string(kObject)] = {"application/json", Bytes(bytes.begin(), bytes.end())};
  }

  SourceFiles& files_;
  const std::string directory_;
  ForeignCheckpoint state_;
  ForeignNode::Members leaves_;
  std::vector<GgufKey> keys_;
  std::vector<GgufKey> split_;  // of the first file
  std::string types_;           // JSON members
};

}  // namespace

bool IsGguf(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, IsGgufFile);
}

ForeignCheckpoint ReadGgufFile(const std::string& path, SourceFiles& files) {
  const std::string name(storage::LastComponent(path));
  const std::string directory = storage::ParentPath(path);
  const bool is_alone = files.options().allow_part;
  std::vector<std::string> names = is_alone ? std::vector{name} : NamesOfModel(name);
  // A name alone makes no part of a file.
  if (names.size() > 1 && FindKey(ReadGgufHeader(*files.Open(path)).keys, kSplitCount) == nullptr) {
    names = {name};
  }
  ForeignCheckpoint state = GgufModel(path, directory, files).Read(names);
  if (is_alone) NameOthers(CheckWhole(path, files), state);
  return state;
}

ForeignCheckpoint ReadGgufFolder(const std::string& path, SourceFiles& files) {
  std::vector<std::string> found;
  for (const SourceEntry& entry : files.List(path)) {
    if (IsGgufFile(entry)) found.push_back(entry.name);
  }
  const std::vector<std::string> names = NamesOfModel(found.front());
  for (const std::string& name : found) {
    if (std::ranges::find(names, name) != names.end()) continue;
    Fail(Code::kUnsupported, path, "models of several GGUF files (", Printable(found.front()), ", ",
         Printable(name), found.size() > 2 ? ", …" : "",
         "), expected those of one; give one of the files");
  }
  ForeignCheckpoint state = GgufModel(path, path, files).Read(names);
  const std::set<std::string> parts(names.begin(), names.end());
  for (const SourceEntry& entry : files.List(path)) {
    if (entry.name.starts_with('.') || parts.contains(entry.name)) continue;
    state.files.push_back({entry.name, entry.size, "not part of the tensors, not read"});
  }
  ReadBeside({.may_link = true, .format_names = parts}, files, state);
  return state;
}

}  // namespace sealpoint::internal::foreign
