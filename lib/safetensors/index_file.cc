// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/index_file.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/safetensors/json_reader.h"

namespace sealpoint::internal::safetensors {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::size_t kDigits = 5;

bool IsInside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

Status ReadWeightMap(JsonReader& reader, StringPairs& files) {
  Status status;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    files.emplace_back(key, "");
    reader.ReadString(files.back().second);
    if (!IsInside(files.back().second) && status.ok()) {
      status = MakeError(Code::kCorrupt, "file is named '", files.back().second,
                         "', expected a relative path within the directory")
                   .AtTensor(key);
    }
  }
  if (!SortUnique(files)) reader.Fail("duplicate key");
  return status;
}

std::string Digits(std::size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, kDigits - std::min(digits.size(), kDigits), '0');
  return digits;
}

bool IsNumber(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The parts of "model-00001-of-00003.safetensors" are "model" and 3. There is no stem if it is not
// numbered.
struct Numbered {
  std::string_view stem;
  std::size_t count = 0;
};

Numbered NumberedOf(std::string_view name) {
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();
  if (name.size() < kTail || !name.ends_with(kSuffix)) return {};
  const std::string_view tail = name.substr(name.size() - kTail);
  const std::string_view count = tail.substr(1 + kDigits + kOf.size(), kDigits);
  const bool is_numbered = tail.front() == '-' && IsNumber(tail.substr(1, kDigits)) &&
                           tail.substr(1 + kDigits, kOf.size()) == kOf && IsNumber(count);
  if (!is_numbered) return {};
  return {name.substr(0, name.size() - kTail), std::stoul(std::string(count))};
}

std::string FileName(std::string_view stem, std::size_t number, std::size_t count) {
  return StrCat(stem, "-", Digits(number), "-of-", Digits(count), kSuffix);
}

}  // namespace

Result<StringPairs> DecodeSafetensorsIndex(std::string_view text) {
  StringPairs files;
  Status status;
  std::set<std::string> keys;
  std::string key;
  JsonReader reader(text);
  for (reader.BeginObject(); reader.NextKey(key);) {
    if (!keys.insert(key).second) reader.Fail("duplicate key");
    if (key == "weight_map") {
      status = ReadWeightMap(reader, files);
    } else {
      reader.Skip();
    }
  }
  reader.End();
  if (reader.status().ok() && !keys.contains("weight_map")) reader.Fail("weight_map is missing");
  if (!reader.status().ok()) {
    return Status(reader.status()).Prefixed("not an index of safetensors");
  }
  SEALPOINT_RETURN_IF_ERROR(status);
  return files;
}

Result<ShardIndex> ShardIndex::Decode(std::string_view text,
                                      const std::vector<std::string>& allow_missing) {
  ShardIndex index;
  SEALPOINT_ASSIGN_OR_RETURN(index.file_of_, DecodeSafetensorsIndex(text));
  for (const std::string& pattern : allow_missing) {
    SEALPOINT_ASSIGN_OR_RETURN(NamePattern parsed, NamePattern::Parse(pattern));
    index.allowed_.push_back(std::move(parsed));
  }
  return index;
}

std::vector<std::string> ShardIndex::files() const {
  std::set<std::string> files;
  for (const auto& [tensor, file] : file_of_) files.insert(file);
  return {files.begin(), files.end()};
}

bool ShardIndex::IsAllowed(std::string_view tensor) const {
  return std::ranges::any_of(
      allowed_, [tensor](const NamePattern& pattern) { return pattern.Matches(tensor); });
}

bool ShardIndex::MayMiss(std::string_view file) const {
  return std::ranges::all_of(
      file_of_, [&](const auto& entry) { return entry.second != file || IsAllowed(entry.first); });
}

Status ShardIndex::NoFile() {
  return Status(Code::kIncomplete,
                "the index names this file, but it is missing; copy it, or leave out its tensors "
                "with --allow-missing (allow_missing)");
}

bool ShardIndex::MayHold(std::string_view tensor, std::string_view file) const {
  const auto named =
      std::ranges::lower_bound(file_of_, tensor, std::less<>(), &StringPairs::value_type::first);
  return named == file_of_.end() || named->first != tensor || named->second == file;
}

Result<std::vector<std::string>> ShardIndex::Missing(
    const std::set<std::pair<std::string_view, std::string_view>>& found) const {
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : file_of_) {
    if (found.contains({tensor, file})) continue;
    if (IsAllowed(tensor)) {
      missing.push_back(tensor);
      continue;
    }
    const auto other = found.lower_bound({tensor, {}});
    if (other != found.end() && other->first == tensor) {
      return MakeError(Code::kCorrupt, "the index locates it in ", file, ", it is in ",
                       other->second)
          .AtTensor(tensor);
    }
    return MakeError(Code::kCorrupt, "the index locates it in ", file,
                     ", but no file has it; --allow-missing (allow_missing) leaves it out")
        .AtTensor(tensor);
  }
  return missing;
}

std::string MissingFile(const std::vector<std::string>& names) {
  std::set<std::pair<std::string_view, std::size_t>> seen;  // so that the work is linear
  for (const std::string& name : names) {
    const Numbered numbered = NumberedOf(name);
    if (!seen.emplace(numbered.stem, numbered.count).second) continue;
    for (std::size_t number = 1; number <= numbered.count; ++number) {
      std::string expected = FileName(numbered.stem, number, numbered.count);
      if (!std::ranges::binary_search(names, expected)) return expected;
    }
  }
  return {};
}

}  // namespace sealpoint::internal::safetensors
