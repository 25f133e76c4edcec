// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/beside.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/base/utf8.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/others.h"
#include "lib/interop/foreign/torch_legacy.h"
#include "lib/interop/foreign/torch_values.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::array<std::string_view, 5> kEndings = {".pt", ".pth", ".bin", ".pkl", ".ckpt"};
// The same weights in another form, as repositories of models have them.
constexpr std::array<std::string_view, 2> kAgain = {"pytorch_model", "consolidated"};
// Texts with state: of the Trainer, and of PEFT, whose weights say nothing without their scale.
constexpr std::array<std::string_view, 2> kTexts = {"trainer_state.json", "adapter_config.json"};
constexpr std::string_view kLeftOver = "left over";

// The items of a node "dict"; null if it has none.
ForeignNode::List* ItemsOf(ForeignNode& tree) {
  for (ForeignNode::Member& member : *tree.if_object()) {
    if (member.key == "items") return member.value.if_list();
  }
  return nullptr;
}

bool IsMapping(ForeignNode& tree) {
  if (tree.if_object() == nullptr) return false;
  const std::string kind = KindOf(tree);
  return kind.empty() || (kind == "dict" && ItemsOf(tree) != nullptr);
}

bool HasKey(ForeignNode& tree, const std::string& key) {
  if (KindOf(tree).empty()) return tree.Find(key) != nullptr;
  return std::ranges::any_of(*ItemsOf(tree), [&](const ForeignNode& item) {
    const ForeignNode::List* const pair = item.if_list();
    const std::string* const text =
        pair == nullptr || pair->empty() ? nullptr : pair->front().if_text();
    return text != nullptr && *text == key;
  });
}

bool IsNamedAsAgain(const std::string& name) {
  return std::ranges::any_of(
      kAgain, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

bool IsNamedAsState(const std::string& name) {
  if (IsNamedAsAgain(name) || name.starts_with('.') || !IsText(name, false)) return false;
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

// The name without its ending, unless the state has that.
std::string KeyFor(const std::string& name, ForeignNode& tree) {
  std::string stem = name.substr(0, name.rfind('.'));
  return stem == kNodeKind || HasKey(tree, stem) ? name : stem;
}

// Why it is not looked at; empty if it is.
std::string ReasonOf(const SourceEntry& entry, const std::string& directory, bool may_link) {
  try {
    if (!may_link) CheckLinks(directory, entry.name);
  } catch (const Failure& failure) {
    return failure.status.message();
  }
  if (entry.is_file) return "";
  if (entry.kind == EntryKind::kDirectory) return "a directory";
  return entry.kind == EntryKind::kSymlink ? WhatLinkIs(directory, entry.name) : "no regular file";
}

// Whether what is no file of the state, but a text such as a page or a pointer, stands in the place
// of one.
bool StandsForState(const std::string& name, const Other& other) {
  if (!other.is_text) return true;
  constexpr std::array<std::string_view, 4> kTextEndings = {".json", ".txt", ".model", ".md"};
  const bool is_pointer = other.code == Code::kIncomplete;
  if (IsNamedAsState(name) || name.ends_with(".safetensors")) return true;
  return is_pointer && std::ranges::none_of(kTextEndings, [&](std::string_view ending) {
           return name.ends_with(ending);
         });
}

// As far as its beginning says, which may end within a character.
bool BeginsAsText(const SourceFile& file) {
  constexpr std::uint64_t kLookedAtBytes = 4096;
  const std::string head = file.Read(0, std::min(file.size(), kLookedAtBytes));
  std::string_view rest = head;
  while (!rest.empty()) {
    const CodePoint point = DecodeCodePoint(rest);
    if (point.size == 0) return head.size() == kLookedAtBytes && rest.size() <= 3;
    if (point.value == 0) return false;
    rest.remove_prefix(point.size);
  }
  return true;
}

class Beside {
 public:
  Beside(const BesideOptions& options, SourceFiles& files, ForeignCheckpoint& state)
      : options_(options), files_(files), state_(state) {}

  void Take(const SourceEntry& entry, const std::string& left_over) {
    std::string reason = ReasonOf(entry, state_.path, options_.may_link);
    if (!left_over.empty()) reason = left_over;
    if (!reason.empty()) {
      const bool may_hold_state = left_over.empty() && !entry.name.starts_with('.');
      LeaveOut(entry, std::move(reason), may_hold_state);
      return;
    }
    const auto file = files_.Open(JoinPath(state_.path, entry.name));
    const std::string key = KeyFor(entry.name, state_.tree);
    const bool is_text = std::ranges::find(kTexts, entry.name) != kTexts.end();
    std::optional<ForeignNode> node;
    if (is_text) {
      node = TextOfFile(*file);
    } else if (IsNamedAsState(entry.name)) {
      if (ReadState(entry, file, key, node)) return;
    }
    if (!node) {
      return LeaveOutFile(entry, *file);
    }
    Put(entry.name, key, *std::move(node),
        is_text ? "state in a separate file: text" : "state in a separate file: torch.save");
  }

 private:
  // A file that is none of torch.save, or of which the format has another form.
  void LeaveOutFile(const SourceEntry& entry, const SourceFile& file) {
    const auto other = entry.size > 0 ? OtherFile(file) : std::nullopt;
    if (other && StandsForState(entry.name, *other)) return LeaveOut(entry, other->what, true);
    const bool is_of_tokenizer = entry.name.ends_with(".model");
    if (BeginsAsText(file) || is_of_tokenizer) return LeaveOut(entry, "text", false);
    const bool is_again = IsNamedAsAgain(entry.name);
    if (entry.name.ends_with(".safetensors") || (is_again && !options_.index.empty())) {
      return LeaveOut(entry, StrCat("not named by the index ", options_.index), true);
    }
    LeaveOut(entry, is_again ? "weights in another form" : "of an unsupported kind", true);
  }

  void LeaveOut(const SourceEntry& entry, std::string reason, bool may_hold_state) {
    state_.left_out.push_back({entry.name, entry.size, std::move(reason), may_hold_state});
  }

  static std::optional<ForeignNode> TextOfFile(const SourceFile& file) {
    std::string text = file.Read(0, file.size());
    file.budget().Add(pickle_cost::kText + text.size() + CostOfText(text), file.path());
    if (!IsText(text, false)) return std::nullopt;
    return text;
  }

  // True if it was left out. No node: it is not a file of torch.save.
  bool ReadState(const SourceEntry& entry, const std::shared_ptr<const SourceFile>& file,
                 const std::string& key, std::optional<ForeignNode>& node) {
    const std::uint64_t used = file->budget().used();
    const std::size_t notes = state_.notes.size();
    const std::size_t unread = state_.unread.size();
    try {
      const std::unique_ptr<TorchArchive> archive = OpenTorchArchive(file);
      if (archive == nullptr) return false;
      node = TorchValues(*archive, files_.options(), state_).NodeOrNothing(archive->root(), {key});
      if (!node) LeaveOut(entry, "its class is unknown", false);
    } catch (Failure& failure) {
      state_.notes.resize(notes);
      state_.unread.resize(unread);
      file->budget().Release(file->budget().used() - used);
      const bool is_unsupported = failure.status.code() == Code::kUnsupported;
      if (!is_unsupported && !files_.options().goes_on) throw;
      state_.unread.push_back({.error = std::move(failure.status)});
      node = ForeignNode::Unread{static_cast<std::uint32_t>(unread)};
    }
    if (!node) return true;
    if (node->if_unread() != nullptr && state_.unread.back().error.code() == Code::kUnsupported) {
      LeaveOut(entry, state_.unread.back().error.message(), true);
      state_.unread.pop_back();
      return true;
    }
    for (std::size_t i = unread; i < state_.unread.size(); ++i) state_.unread[i].is_beside = true;
    return false;
  }

  void Put(const std::string& name, const std::string& key, ForeignNode node,
           const std::string& meaning) {
    for (ForeignFile& file : state_.files) {
      if (file.name == name) file.meaning = meaning;
    }
    if (KindOf(state_.tree).empty()) {
      state_.tree.if_object()->push_back({key, std::move(node)});
    } else {
      ItemsOf(state_.tree)->push_back(PairNode(key, std::move(node)));
    }
  }

  const BesideOptions& options_;
  SourceFiles& files_;
  ForeignCheckpoint& state_;
};

}  // namespace

void ReadBeside(const BesideOptions& options, SourceFiles& files, ForeignCheckpoint& state) {
  if (!IsMapping(state.tree)) return;  // which is an error, but not one of these files
  std::map<std::string, std::string> left_over;
  for (const ForeignFile& file : state.files) {
    if (file.meaning.starts_with(kLeftOver)) left_over[file.name] = file.meaning;
  }
  Beside beside(options, files, state);
  for (const SourceEntry& entry : files.List(state.path)) {
    if (!options.format_names.contains(entry.name)) beside.Take(entry, left_over[entry.name]);
  }
}

void DescribeFiles(SourceFiles& files, ForeignCheckpoint& state,
                   const std::function<const char*(const std::string& name)>& meaning_of) {
  for (const SourceEntry& entry : files.List(state.path)) {
    if (entry.name.starts_with('.')) continue;
    const char* const meaning = meaning_of(entry.name);
    state.files.push_back({entry.name, entry.size,
                           meaning != nullptr ? meaning : "not part of the tensors, not read"});
  }
}

}  // namespace sealpoint::internal::foreign
