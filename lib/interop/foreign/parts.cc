// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/parts.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/others.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::string_view kOfDeepSpeed = "*_states.pt";
constexpr std::string_view kOfDcp = "__*.distcp";
constexpr std::string_view kOf = "-of-";
constexpr std::string_view kOptimizerOfMegatron = "distrib_optim.pt";
constexpr std::size_t kPartsShownMax = 4;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::size_t EndOfDigits(std::string_view text, std::size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// Whether "-of-00003" follows, and there are more than one.
bool IsOfSeveral(std::string_view rest) {
  if (!rest.starts_with(kOf)) return false;
  const std::size_t end = EndOfDigits(rest, kOf.size());
  std::string_view count = rest.substr(kOf.size(), end - kOf.size());
  while (count.starts_with('0')) count.remove_prefix(1);
  return !count.empty() && count != "1";
}

bool IsNumberOfPart(std::string_view before, std::string_view after) {
  if (before == "consolidated.") return after == ".pth" || after == ".pt";
  if (before.ends_with('-') && IsOfSeveral(after)) return true;
  if (before.ends_with('_') || before.ends_with('-')) before.remove_suffix(1);
  return before.ends_with("rank");
}

struct Parts {
  std::string family;  // empty: the file is a state of its own
  std::vector<SourceEntry> others;
};

std::vector<SourceEntry> OthersIn(const std::string& directory, const std::string& family,
                                  std::string_view name, std::string_view prefix,
                                  SourceFiles& files) {
  std::vector<SourceEntry> others;
  try {
    for (SourceEntry& entry : files.List(directory)) {
      if (entry.name == name || FamilyOf(entry.name) != family) continue;
      entry.name.insert(0, prefix);
      others.push_back(std::move(entry));
    }
  } catch (const Failure&) {  // what cannot be listed says nothing
    return {};
  }
  return others;
}

Parts PartsOf(const std::string& file, SourceFiles& files) {
  const std::string_view name = storage::LastComponent(file);
  const std::string directory = storage::ParentPath(file);
  const std::string family = FamilyOf(name);
  if (!family.empty()) {
    auto others = OthersIn(directory, family, name, "", files);
    const bool is_part = !others.empty() || family == kOfDcp || family.find(kOf) != family.npos;
    if (is_part) return {family, std::move(others)};
  }
  const std::string_view folder = storage::LastComponent(directory);
  const std::string of_folder = FamilyOf(folder);  // "mp_rank_#"
  if (of_folder.empty()) return {};
  auto others = OthersIn(storage::ParentPath(directory), of_folder, folder, "../", files);
  for (const SourceEntry& entry : files.List(directory)) {
    if (entry.name == kOptimizerOfMegatron && name != entry.name) others.push_back(entry);
  }
  return others.empty() ? Parts() : Parts{of_folder, std::move(others)};
}

std::string_view WayOf(const std::string& family) {
  if (family.starts_with("mp_rank_")) return "give the directory that has those of the ranks";
  const bool is_read =
      family == kOfDcp || family == kOfDeepSpeed || family.starts_with("consolidated.");
  if (is_read || family.find(kOf) != family.npos) return "give their directory";
  return "save the whole state with the program that wrote them";
}

}  // namespace

std::string FamilyOf(std::string_view name) {
  if (name.ends_with("_model_states.pt") || name.ends_with("_optim_states.pt") ||
      (name.starts_with("layer_") && name.ends_with("-model_states.pt"))) {
    return std::string(kOfDeepSpeed);
  }
  if (name.starts_with("__") && name.ends_with(".distcp")) return std::string(kOfDcp);
  std::string family;
  bool is_part = false;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::max(at + 1, EndOfDigits(name, at));
    const bool is_number =
        IsDigit(name[at]) && IsNumberOfPart(name.substr(0, at), name.substr(end));
    family.append(is_number ? "#" : name.substr(at, end - at));
    is_part |= is_number;
    at = end;
  }
  return is_part ? family : "";
}

void CheckKind(const std::string& file) {
  if (storage::LastComponent(file) != kOptimizerOfMegatron) return;
  Fail(Code::kUnsupported, file,
       "optimizer state of one Megatron rank in its format before torch_dist, expected a whole "
       "state; ",
       kFromMegatron);
}

std::vector<SourceEntry> CheckWhole(const std::string& file, SourceFiles& files) {
  Parts parts = PartsOf(file, files);
  if (parts.family.empty() || files.options().allow_part) return std::move(parts.others);
  std::string shown = Printable(storage::LastComponent(file));
  for (std::size_t i = 0; i < std::min(parts.others.size(), kPartsShownMax); ++i) {
    shown += ", " + Printable(parts.others[i].name);
  }
  if (parts.others.size() > kPartsShownMax) shown += ", …";
  Fail(Code::kUnsupported, file, "one of several parts of a state (", shown,
       "), expected the whole; ", WayOf(parts.family),
       "; --allow-part (allow_part) converts it alone");
}

void NameOthers(const std::vector<SourceEntry>& others, ForeignCheckpoint& state) {
  for (const SourceEntry& other : others) {
    state.left_out.push_back({other.name, other.size, "another part of the same state", true});
  }
}

void NameRest(const std::string& directory, SourceFiles& files, ForeignCheckpoint& state) {
  const std::string_view name = storage::LastComponent(directory);
  const bool is_epoch = name.starts_with("epoch_");
  if (!is_epoch && !IsOfAccelerate(name)) return;
  try {
    std::vector<SourceEntry> entries = files.List(storage::ParentPath(directory));
    const bool is_fsdp = std::ranges::any_of(entries, [](const SourceEntry& entry) {
      return entry.name.starts_with("pytorch_model_fsdp");
    });
    std::vector<SourceEntry> others;
    for (SourceEntry& entry : entries) {
      const bool belongs = is_epoch ? entry.name == "recipe_state"
                                    : is_fsdp && entry.name != name && IsOfAccelerate(entry.name);
      if (!belongs) continue;
      entry.name.insert(0, "../");
      others.push_back(std::move(entry));
    }
    NameOthers(others, state);
  } catch (const Failure&) {  // what cannot be listed says nothing
    return;
  }
}

}  // namespace sealpoint::internal::foreign
