// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/stats_store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <utility>

#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/storage.h"
#include "tools/ckpt/report/new_file.h"
#include "tools/common/json.h"

namespace sealpoint::tools {
namespace {

// Grows when a member means another thing.
constexpr int kVersion = 1;
constexpr std::uint64_t kSizeMax = 1 * kGiB;

// The double that DoubleToJson made it of, to the last bit.
double ToDouble(const Json& json) {
  return json.is_string() ? std::strtod(json.get<std::string>().c_str(), nullptr)
                          : json.get<double>();
}

Json ToJson(const TensorStatistics& tensor) {
  Json json = {{"name", tensor.name}, {"dtype", DTypeName(tensor.dtype)}, {"shape", tensor.shape}};
  if (!tensor.values) return json;
  const ValueStatistics& values = *tensor.values;
  json["value_count"] = values.value_count;
  json["nan_count"] = values.nan_count;
  json["positive_infinity_count"] = values.positive_infinity_count;
  json["negative_infinity_count"] = values.negative_infinity_count;
  json["zero_count"] = values.zero_count;
  json["saturated_count"] = values.saturated_count;
  json["zero_tail_count"] = values.zero_tail_count;
  json["min"] = DoubleToJson(values.min);
  json["max"] = DoubleToJson(values.max);
  json["mean"] = DoubleToJson(values.mean);
  json["squared_deviations"] = DoubleToJson(values.squared_deviations);
  json["squares"] = DoubleToJson(values.squares);
  return json;
}

TensorValues ToValues(const Json& json) {
  TensorValues tensor{.name = json.at("name").get<std::string>()};
  if (!json.contains("value_count")) return tensor;
  tensor.values.emplace();
  json.at("value_count").get_to(tensor.values->value_count);
  json.at("nan_count").get_to(tensor.values->nan_count);
  json.at("positive_infinity_count").get_to(tensor.values->positive_infinity_count);
  json.at("negative_infinity_count").get_to(tensor.values->negative_infinity_count);
  json.at("zero_count").get_to(tensor.values->zero_count);
  json.at("saturated_count").get_to(tensor.values->saturated_count);
  json.at("zero_tail_count").get_to(tensor.values->zero_tail_count);
  tensor.values->min = ToDouble(json.at("min"));
  tensor.values->max = ToDouble(json.at("max"));
  tensor.values->mean = ToDouble(json.at("mean"));
  tensor.values->squared_deviations = ToDouble(json.at("squared_deviations"));
  tensor.values->squares = ToDouble(json.at("squares"));
  return tensor;
}

Json ToJson(const TensorUpdate& tensor) {
  return {{"name", tensor.name}, {"l2", DoubleToJson(tensor.l2)}};
}

TensorUpdate ToUpdate(const Json& json) {
  return {.name = json.at("name").get<std::string>(), .l2 = ToDouble(json.at("l2"))};
}

// Ends each file; what it is the digest of is the text before it.
constexpr std::string_view kSeal = ",\n\"xxh3_128\": \"";

std::string Sealed(std::string text) {
  text += fmt::format("{}{}\"}}\n", kSeal, ComputeDigest(AsBytes(text)).ToHex());
  return text;
}

bool IsSealed(std::string_view text) {
  const std::size_t seal = text.rfind(kSeal);
  return seal != std::string_view::npos && Sealed(std::string(text.substr(0, seal))) == text;
}

// A file of the store: its name, and how its text begins, which says once more what it is about.
struct StoreFile {
  std::string name;
  std::string begin;
};

std::string Begin(const ContentKey& key) {
  return fmt::format("{{\"version\": {},\n\"attempt\": \"{}\",\n\"index\": \"{}\",\n", kVersion,
                     key.attempt.ToHex(), key.index.ToHex());
}
StoreFile ValuesFile(const ContentKey& key) {
  return {key.ToString() + ".values.json", Begin(key) + "\"tensors\": ["};
}
StoreFile UpdateFile(const ContentKey& key, const ContentKey& since) {
  return {fmt::format("{}.since-{}.json", key.ToString(), since.ToString()),
          fmt::format("{}\"since\": \"{}\",\n\"tensors\": [", Begin(key), since.ToString())};
}

template <typename T>
std::string ToText(const StoreFile& file, const std::vector<T>& tensors) {
  std::string text = file.begin;
  constexpr bool kAscii = true;
  for (const T& tensor : tensors) {
    text += &tensor == tensors.data() ? "\n" : ",\n";
    text += ToJson(tensor).dump(-1, ' ', kAscii);
  }
  return Sealed(text + "]");
}

// Its "tensors"; nothing if there is no such file, or it is not what was written.
std::optional<Json> ReadTensors(const std::string& store, const StoreFile& file) {
  if (store.empty()) return std::nullopt;
  const Result<std::string> text = ReadBegin(JoinPath(store, file.name), kSizeMax);
  if (!text || !text->starts_with(file.begin) || !IsSealed(*text)) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json.value("tensors", Json());
}

template <typename T>
std::optional<std::vector<T>> Read(const std::string& store, const StoreFile& file,
                                   T (*make)(const Json&)) {
  // A seal is no signature: whoever wrote the file may have meant something else by it.
  try {
    const std::optional<Json> tensors = ReadTensors(store, file);
    if (!tensors) return std::nullopt;
    std::vector<T> all;
    all.reserve(tensors->size());
    for (const Json& json : *tensors) all.push_back(make(json));
    return all;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Status Put(const std::string& store, const StoreFile& file, const std::string& text) {
  if (store.empty()) {
    return {Code::kInvalidArgument, "statistics cannot be stored next to this series"};
  }
  if (Status status = DefaultStorage()->CreateDirectories(store); !status.ok()) return status;
  const std::string path = JoinPath(store, file.name);
  const Status made = MakeFile(path, text);
  if (made.code() != Code::kAlreadyExists) return made;
  return ReadTensors(store, file) ? Status() : ReplaceFile(path, text);
}

// The path as it is to be extended: without slashes at its end, and not ".". Empty if nothing can
// be beside it.
std::string Normal(const std::string& path) {
  const std::size_t scheme = path.find("://");
  std::string normal = path;
  if (scheme == std::string::npos) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error);
    if (error) return {};
    const std::string last = std::filesystem::path(path).filename();
    if (last.empty() || last == "." || last == "..") normal = absolute.lexically_normal();
  }
  while (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  const std::size_t slash = normal.rfind('/');
  const bool is_bucket =
      scheme != std::string::npos && (slash == std::string::npos || slash < scheme + 3);
  return is_bucket || normal == "/" ? std::string() : normal;
}

}  // namespace

ContentKey ContentKey::Of(const Checkpoint& checkpoint) {
  return {.attempt = checkpoint.attempt(), .index = ComputeDigest(checkpoint.index_bytes())};
}

std::string ContentKey::ToString() const { return attempt.ToHex() + "-" + index.ToHex(); }

StatsStore StatsStore::OfSeries(const std::string& series) {
  const std::string path = Normal(series);
  return StatsStore(path.empty() ? path : path + ".stats");
}

StatsStore StatsStore::OfCheckpoint(const std::string& checkpoint) {
  const std::string path = Normal(checkpoint);
  return path.empty() ? StatsStore(path) : OfSeries(SplitPath(path).first);
}

bool StatsStore::exists() const {
  return !path_.empty() && DefaultStorage()->OpenDirectory(path_).ok();
}

std::optional<std::vector<TensorValues>> StatsStore::FindValues(const ContentKey& key) const {
  return Read(path_, ValuesFile(key), ToValues);
}

std::optional<std::vector<TensorUpdate>> StatsStore::FindUpdate(const ContentKey& key,
                                                                const ContentKey& since) const {
  return Read(path_, UpdateFile(key, since), ToUpdate);
}

Status StatsStore::PutValues(const ContentKey& key,
                             const std::vector<TensorStatistics>& tensors) const {
  const StoreFile file = ValuesFile(key);
  return Put(path_, file, ToText(file, tensors));
}

Status StatsStore::PutUpdate(const ContentKey& key, const ContentKey& since,
                             const std::vector<TensorUpdate>& tensors) const {
  const StoreFile file = UpdateFile(key, since);
  return Put(path_, file, ToText(file, tensors));
}

}  // namespace sealpoint::tools
