// SPDX-License-Identifier: Apache-2.0
#include "tools/common/hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

namespace fs = std::filesystem;

// An object store: the file system knows nothing of it.
bool IsUri(std::string_view path) { return path.find("://") != std::string_view::npos; }

// No more names of a directory than these are looked at.
constexpr int kNamesMax = 10'000;

template <typename Visit>
void ForEachEntry(const fs::path& directory, const Visit& visit) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (int i = 0; i < kNamesMax && !error && entry != fs::directory_iterator(); ++i) {
    visit(*entry);
    entry.increment(error);
  }
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// What cannot be looked at may be there.
bool IsMissing(const fs::path& path) {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::not_found;
}

bool IsCheckpointFile(const fs::path& name) {
  return name == "COMMIT" || name.extension() == ".blob" || name.extension() == ".index" ||
         name.extension() == ".commit";
}

bool HoldsCheckpoint(const fs::path& directory) {
  bool holds = false;
  ForEachEntry(directory,
               [&](const auto& entry) { holds |= IsCheckpointFile(entry.path().filename()); });
  return holds;
}

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

// The directory beside the one that does not exist whose name is most like it.
std::optional<fs::path> MostAlike(const fs::path& missing) {
  const std::string missing_name = missing.filename();
  std::size_t least = std::max<std::size_t>(missing_name.size() / 4, 1);
  std::optional<fs::path> found;
  const fs::path parent = missing.has_parent_path() ? missing.parent_path() : ".";
  ForEachEntry(parent, [&](const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_directory(error)) return;
    const std::string name = entry.path().filename();
    const std::size_t distance = EditDistance(missing_name, name);
    const fs::path candidate = missing.parent_path() / name;
    // The first by name if there are several, in whatever order they are listed.
    if (distance > least || (distance == least && found && *found < candidate)) return;
    least = distance;
    found = candidate;
  });
  return found;
}

std::string HintForMissing(fs::path path) {
  if (!path.has_filename()) path = path.parent_path();  // "run7/"
  while (path.has_relative_path() && path.has_parent_path() && IsMissing(path.parent_path())) {
    path = path.parent_path();
  }
  if (const auto alike = MostAlike(path)) {
    return fmt::format("did you mean {}?", Printable(alike->string()));
  }
  if (!path.has_parent_path()) return "";
  return fmt::format("{} exists, but nothing named {} is in it",
                     Printable(path.parent_path().string()), Printable(path.filename().string()));
}

// Whose checkpoint this looks like; empty if nobody's that is known.
std::string_view ForeignFormat(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const fs::path extension = path.extension();
    if (extension == ".safetensors") return "safetensors";
    if (extension == ".distcp") return "torch.distributed.checkpoint";
    const bool is_torch = extension == ".pt" || extension == ".pth" || extension == ".ckpt";
    return is_torch ? "torch.save" : "";
  }
  if (Exists(path / "latest_checkpointed_iteration.txt")) return "Megatron";
  if (Exists(path / ".metadata")) {
    return Exists(path / "metadata.json") ? "Megatron" : "torch.distributed.checkpoint";
  }
  std::string_view found;
  ForEachEntry(path, [&](const fs::directory_entry& entry) {
    const fs::path extension = entry.path().extension();
    if (extension == ".safetensors") found = "safetensors";
    if (extension == ".distcp") found = "torch.distributed.checkpoint";
  });
  return found;
}

std::string HintForForeign(const fs::path& path) {
  const std::string_view format = ForeignFormat(path);
  if (format.empty()) return "";
  const std::string name = Printable(path.string());
  return fmt::format(
      "it looks like a checkpoint of {}; `ckpt ls {}` shows it, `ckpt convert {} DST` converts it",
      format, name, name);
}

// For what is no directory; empty if it is one.
std::string HintForOther(const fs::path& path) {
  if (IsMissing(path)) return HintForMissing(path);
  std::error_code error;
  if (fs::is_directory(path, error)) return "";
  if (!IsCheckpointFile(path.filename())) return HintForForeign(path);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : ".";
  return fmt::format("it is a file of a checkpoint; give its directory, {}",
                     Printable(parent.string()));
}

}  // namespace

std::string HintForCheckpoint(const std::string& path) {
  if (IsUri(path)) return "";
  if (std::string hint = HintForOther(path); !hint.empty()) return hint;
  std::uint64_t count = 0;
  std::string first;
  ForEachEntry(path, [&](const fs::directory_entry& entry) {
    if (!Exists(entry.path() / "COMMIT")) return;
    const std::string name = entry.path().filename();
    if (count++ == 0 || name < first) first = name;
  });
  if (count == 0) return HintForForeign(path);
  return fmt::format("it is a series of {}, such as {}; ckpt verify --series checks all of them",
                     FormatCount(count, "checkpoint"), Printable(first));
}

std::string HintForSeries(const std::string& path, std::string_view otherwise) {
  if (IsUri(path)) return "";
  if (std::string hint = HintForOther(path); !hint.empty()) return hint;
  if (!HoldsCheckpoint(path)) return "";
  return fmt::format("it is a checkpoint itself; {}", otherwise);
}

}  // namespace sealpoint::tools
