// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/format/constants.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"
#include "sealpoint/interop.h"
#include "sealpoint/series.h"
#include "sealpoint/storage.h"

namespace sealpoint {
namespace internal::interop {
namespace {

constexpr std::size_t kNamesMax = 10'000;
// Entries of a directory that are opened.
constexpr std::size_t kOpenedMax = 256;
constexpr std::size_t kShownMax = 3;

using Names = std::vector<std::string>;

// Insertions, deletions, replacements and swaps of neighbours that make one text of the other.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

// The first by name of those that are most alike; empty if none is alike.
std::string MostAlike(std::string_view missing, const std::vector<EntryInfo>& entries) {
  std::size_t least = std::max<std::size_t>(missing.size() / 4, 1);
  std::string found;
  for (const EntryInfo& entry : entries) {
    const std::string& name = entry.name;
    if (name.size() > missing.size() + least || name.size() + least < missing.size()) continue;
    const std::size_t distance = EditDistance(missing, name);
    if (distance > least || (distance == least && !found.empty() && found < name)) continue;
    least = distance;
    found = name;
  }
  return found;
}

// "step-9" before "step-10": the numbers in the names, as digits, then the names.
bool IsBefore(const std::string& a, const std::string& b) {
  const auto numbers = [](std::string_view name) {
    std::vector<std::pair<std::size_t, std::string_view>> found;
    constexpr std::string_view kDigits = "0123456789";
    for (std::size_t at = 0; (at = name.find_first_of(kDigits, at)) != name.npos;) {
      const std::size_t end = std::min(name.find_first_not_of(kDigits, at), name.size());
      const std::size_t begin = std::min(name.find_first_not_of('0', at), end);
      found.emplace_back(end - begin, name.substr(begin, end - begin));
      at = end;
    }
    return found;
  };
  return std::pair(numbers(a), std::string_view(a)) < std::pair(numbers(b), std::string_view(b));
}

bool IsOwn(std::string_view name) {
  using format::NameKind;
  const NameKind kind = format::ParseName(name).kind;
  return kind == NameKind::kMarker || kind == NameKind::kIndex || kind == NameKind::kBlob ||
         kind == NameKind::kUnpublishedMarker;
}

bool IsFolder(const EntryInfo& entry) { return entry.kind == EntryKind::kDirectory; }

std::string Listed(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + Printable(name);
  return text;
}

std::string ListedFirst(const Names& names) {
  const std::size_t count = std::min(names.size(), kShownMax);
  const std::string more =
      names.size() > count ? StrCat(" and ", names.size() - count, " more") : std::string();
  return Listed(std::span(names).first(count)) + more;
}

class PlaceReader {
 public:
  PlaceReader(std::string path, const DescribeOptions& options)
      : path_(std::move(path)),
        options_(options),
        storage_(options.storage != nullptr ? options.storage : DefaultStorage()) {}

  PlaceDescription Describe() {
    if (path_.empty()) return {};
    const auto entry = StatPath(*storage_, path_);
    if (!entry.ok()) return {};
    if (!*entry) return {PlaceKind::kMissing, OfMissing()};
    if ((*entry)->kind != EntryKind::kDirectory) return {PlaceKind::kOther, OfFile((*entry)->name)};
    return Open(path_).ok() ? OfDirectory() : PlaceDescription();
  }

 private:
  // Fills entries_. Errors: those of the storage.
  Status Open(const std::string& path) {
    entries_.clear();
    const auto directory = storage_->OpenDirectory(path);
    if (!directory.ok()) return directory.error();
    return (*directory)->ForEachEntry([&](const EntryInfo& entry) {
      entries_.push_back(entry);
      return entries_.size() < kNamesMax;
    });
  }

  bool IsFile(const std::string& path) const {
    const auto entry = StatPath(*storage_, path);
    return entry.ok() && *entry && (*entry)->kind != EntryKind::kDirectory;
  }

  // Empty if a directory on the way cannot be looked at: the path may exist.
  std::string OfMissing() {
    std::string missing = path_;
    std::string parent = storage::ParentPath(missing);
    Status opened = Open(parent);
    while (opened.code() == Code::kNotFound && storage::ParentPath(parent) != parent) {
      missing = std::exchange(parent, storage::ParentPath(parent));
      opened = Open(parent);
    }
    const std::string what = StrCat("there is no ", Printable(path_), ": ");
    if (!opened.ok()) return IsFile(parent) ? StrCat(what, Printable(parent), " is a file") : "";
    const std::string name(storage::LastComponent(missing));
    const bool is_here = parent == "." && !missing.starts_with("./");
    const std::string near = MostAlike(name, entries_);
    return StrCat(
        what,
        is_here ? StrCat("the working directory has no entry ", Printable(name))
                : StrCat(Printable(parent), " exists, but has no entry ", Printable(name)),
        near.empty()
            ? ""
            : StrCat("; did you mean ", Printable(is_here ? near : JoinPath(parent, near)), "?"));
  }

  std::string OfFile(const std::string& name) {
    if (IsOwn(name)) {
      return StrCat("it is a file of a checkpoint; pass its directory, ",
                    Printable(storage::ParentPath(path_)));
    }
    const std::string foreign = OfForeign();
    return foreign.empty() ? "it is a file, but not a checkpoint of a known format" : foreign;
  }

  std::string OfForeign() {
    const auto kind = KindOf(path_);
    if (!kind) return "";
    const std::string word = Printable(path_);
    if (!kind->is_read) return kind->what;
    return StrCat("it is ", kind->what, "; `ckpt convert ", word, " DST` converts it, `ckpt ls ",
                  word, "` shows it");
  }

  PlaceDescription OfDirectory() {
    const bool is_own =
        std::ranges::any_of(entries_, [](const EntryInfo& entry) { return IsOwn(entry.name); });
    if (is_own) return {.kind = PlaceKind::kCheckpoint};
    std::erase_if(entries_, [](const EntryInfo& entry) {
      return entry.kind != EntryKind::kDirectory && entry.kind != EntryKind::kFile;
    });
    std::ranges::sort(entries_, {}, &EntryInfo::name);
    if (entries_.size() > kOpenedMax) entries_.resize(kOpenedMax);
    const Names folders = Select(IsFolder);
    if (HoldsCheckpoints(path_, folders)) return {PlaceKind::kSeries, OfSeries()};
    std::string text = OfForeign();
    if (text.empty()) text = OfCheckpoints(folders);
    if (text.empty()) text = OfFolderOfSeries(folders);
    if (text.empty()) text = OfFiles();
    return {text.empty() ? PlaceKind::kUnknown : PlaceKind::kOther, std::move(text)};
  }

  std::string OfSeries() {
    const auto newest = Series(path_, storage_).Newest({.allow_fallback = true});
    if (!newest.ok()) return "it is a series, but none of its checkpoints can be opened";
    return StrCat("it is a series; its newest checkpoint is ", Printable(newest->entry.name),
                  options_.opens_series);
  }

  std::string OfCheckpoints(const Names& folders) {
    Names found;
    for (const std::string& name : folders) {
      if (KindOf(JoinPath(path_, name))) found.push_back(name);
    }
    if (found.empty()) return "";
    std::ranges::sort(found, IsBefore);
    const std::span<const std::string> all(found);
    return StrCat("a folder of ", found.size(), " checkpoints of other programs (",
                  Listed(all.last(std::min(found.size(), kShownMax))),
                  "), expected one of them, such as ", Printable(JoinPath(path_, found.back())));
  }

  std::string OfFolderOfSeries(const Names& folders) {
    Names found;
    for (const std::string& name : folders) {
      const std::string place = JoinPath(path_, name);
      if (!Open(place).ok()) continue;
      const Names inner = Select(IsFolder);
      if (HoldsCheckpoints(place, inner)) found.push_back(name);
    }
    if (found.empty()) return "";
    return StrCat("a directory of series (", ListedFirst(found),
                  "), expected one of them, such as ", Printable(JoinPath(path_, found.front())));
  }

  // A Trainer without safetensors leaves such, or a training that stores a file per epoch.
  std::string OfFiles() {
    if (!Open(path_).ok()) return "";
    Names found = Select([&](const EntryInfo& entry) {
      if (entry.kind != EntryKind::kFile) return false;
      const auto kind = KindOf(JoinPath(path_, entry.name));
      return kind && kind->is_read && kind->what == "a file of torch.save";
    });
    if (found.empty()) return "";
    std::ranges::sort(found);
    if (found.size() == 1) {
      return StrCat("a folder with a file of torch.save, expected that file: ",
                    Printable(JoinPath(path_, found.front())));
    }
    return StrCat("a folder with ", found.size(), " files of torch.save (", ListedFirst(found),
                  "), expected one of them, if each is a state of its own");
  }

  std::optional<ForeignKind> KindOf(const std::string& path) const {
    auto kind = KindOfForeign(path, {.storage = storage_});
    return kind.ok() ? *std::move(kind) : std::nullopt;
  }

  template <typename Predicate>
  Names Select(const Predicate& is_meant) const {
    Names names;
    for (const EntryInfo& entry :
         std::span(entries_).first(std::min(entries_.size(), kOpenedMax))) {
      if (is_meant(entry)) names.push_back(entry.name);
    }
    return names;
  }

  bool HoldsCheckpoints(const std::string& path, const Names& folders) const {
    const auto directory = storage_->OpenDirectory(path);
    return directory.ok() && std::ranges::any_of(folders, [&](const std::string& name) {
             return (*directory)->ReadFileIn(name, format::kMarkerName, 1).ok();
           });
  }

  const std::string path_;
  const DescribeOptions& options_;
  const std::shared_ptr<Storage> storage_;
  std::vector<EntryInfo> entries_;
};

}  // namespace
}  // namespace internal::interop

PlaceDescription DescribePlace(const std::string& path, const DescribeOptions& options) {
  return internal::interop::PlaceReader(path, options).Describe();
}

}  // namespace sealpoint
