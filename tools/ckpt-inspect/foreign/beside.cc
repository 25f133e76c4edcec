// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/foreign/beside.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "tools/ckpt-inspect/foreign/bytes.h"
#include "tools/ckpt-inspect/foreign/failure.h"
#include "tools/ckpt-inspect/foreign/torch_legacy.h"
#include "tools/ckpt-inspect/foreign/torch_values.h"

namespace sealpoint::tools {
namespace {

constexpr std::array<std::string_view, 5> kEndings = {".pt", ".pth", ".bin", ".pkl", ".ckpt"};
// The same weights in another form, as repositories of models have them.
constexpr std::array<std::string_view, 2> kAgain = {"pytorch_model", "consolidated"};
constexpr std::string_view kProgress = "trainer_state.json";

bool IsMapping(const Json& tree) {
  if (!tree.is_object()) return false;
  if (!tree.contains(kNodeKind)) return true;
  return tree[kNodeKind] == "dict" && tree.contains("items") && tree["items"].is_array();
}

bool HasKey(const Json& tree, const std::string& key) {
  if (!tree.contains(kNodeKind)) return tree.contains(key);
  return std::ranges::any_of(tree["items"], [&](const Json& item) {
    return item.is_array() && !item.empty() && item[0] == key;
  });
}

bool IsNamedAsState(const std::string& name) {
  const bool is_again = std::ranges::any_of(
      kAgain, [&](std::string_view beginning) { return name.starts_with(beginning); });
  if (is_again || name.starts_with('.') || !IsText(name, false)) return false;
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

// The name without its ending, unless the state has that.
std::string KeyFor(const std::string& name, const Json& tree) {
  std::string stem = std::filesystem::path(name).stem().string();
  return stem == kNodeKind || HasKey(tree, stem) ? name : stem;
}

std::optional<Json> TextOfFile(const SourceFile& file) {
  std::string text = file.Read(0, file.size());
  const std::uint64_t cost = pickle_cost::kText + text.size() + CostOfText(text);
  file.budget().Add(cost, file.path());
  if (!IsText(text, false)) return std::nullopt;
  return text;
}

std::optional<Json> ValueOfFile(const std::shared_ptr<const SourceFile>& file,
                                const std::string& key, ForeignState& state) {
  const std::uint64_t used = file->budget().used();
  const std::size_t notes = state.notes.size();
  try {
    const std::unique_ptr<TorchArchive> archive = OpenTorchArchive(file);
    if (archive == nullptr) return std::nullopt;
    return TorchValues(*archive, state).NodeOrNothing(archive->root(), {key});
  } catch (const Failure& failure) {
    if (failure.status.code() != Code::kUnsupported) throw;
    state.notes.resize(notes);
    file->budget().Release(file->budget().used() - used);
    return std::nullopt;
  }
}

}  // namespace

void ReadBeside(bool may_link, SourceFiles& files, ForeignState& state) {
  if (!IsMapping(state.tree)) return;  // which is an error, but not one of these files
  std::map<std::string, ForeignFile*> sorted;
  for (ForeignFile& file : state.files) {
    const bool is_candidate = file.name == kProgress || IsNamedAsState(file.name);
    if (is_candidate && file.size_bytes > 0 && file.meaning.ends_with(", not read")) {
      sorted[file.name] = &file;
    }
  }
  for (const SourceEntry& entry : files.List(state.path)) {
    if (!entry.is_file) sorted.erase(entry.name);
  }
  for (const auto& [name, described] : sorted) {
    try {
      if (!may_link) CheckLinks(state.path, name);
    } catch (const Failure&) {
      continue;
    }
    const std::string key = KeyFor(name, state.tree);
    const auto file = files.Open(JoinPath(state.path, name));
    const bool is_text = name == kProgress;
    std::optional<Json> node = is_text ? TextOfFile(*file) : ValueOfFile(file, key, state);
    if (!node) continue;
    described->meaning = is_text ? "state beside the tensors: text"
                                 : "state beside the tensors: a file of torch.save";
    if (state.tree.contains(kNodeKind)) {
      state.tree["items"].push_back(Json::array({key, std::move(*node)}));
    } else {
      state.tree[key] = std::move(*node);
    }
  }
}

}  // namespace sealpoint::tools
