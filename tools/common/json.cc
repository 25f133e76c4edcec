// SPDX-License-Identifier: Apache-2.0
#include "tools/common/json.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "tools/common/output.h"

namespace sealpoint::tools {
namespace {

constexpr std::size_t kIndent = 2;

std::string Line(std::size_t depth) {
  std::string line("\n");
  line.append(kIndent * depth, ' ');
  return line;
}

std::string Scalar(const Json& value) {
  constexpr bool kAscii = true;
  return value.dump(-1, ' ', kAscii, Json::error_handler_t::replace);
}

bool FitsOneLine(const Json& array) {
  return std::none_of(array.begin(), array.end(),
                      [](const Json& one) { return one.is_structured() && !one.empty(); });
}

void Append(std::string& out, const Json& value, std::size_t depth) {
  if (!value.is_structured() || value.empty()) {
    out += Scalar(value);
    return;
  }
  const bool is_line = value.is_array() && FitsOneLine(value);
  out += value.is_array() ? '[' : '{';
  bool is_first = true;
  for (const auto& [key, one] : value.items()) {
    if (!is_first) out += is_line ? ", " : ",";
    is_first = false;
    if (!is_line) out += Line(depth + 1);
    if (value.is_object()) out += Scalar(key) + ": ";
    Append(out, one, depth + 1);
  }
  if (!is_line) out += Line(depth);
  out += value.is_array() ? ']' : '}';
}

}  // namespace

Json StepToJson(std::uint64_t step) { return step == kNoStep ? Json() : Json(step); }

Json IdToJson(const Id128& id) { return id.is_zero() ? Json() : Json(id.ToHex()); }

Json DoubleToJson(double value) {
  if (std::isnan(value)) return "nan";  // of either sign
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

namespace {

template <typename T>
Json ValueToJson(const T& value) {
  return value;
}
Json ValueToJson(double value) { return DoubleToJson(value); }
template <typename T>
Json ValueToJson(const std::vector<T>& values) {
  Json json = Json::array();
  for (const auto& value : values) json.push_back(ValueToJson(T(value)));
  return json;
}

}  // namespace

Json AttributesToJson(const Attributes& attributes) {
  Json json = Json::object();
  for (const auto& [name, value] : attributes.values()) {
    json[name] = std::visit([](const auto& held) { return ValueToJson(held); }, value);
  }
  return json;
}

Json StatusToJson(const Status& status) {
  const Place& place = status.place();
  Json json = {{"code", std::string(CodeName(status.code()))}};
  if (!place.rule.empty()) json["rule"] = place.rule;
  if (!place.path.empty()) json["path"] = place.path;
  if (place.offset) json["offset"] = *place.offset;
  if (!place.tensor.empty()) json["tensor"] = place.tensor;
  if (!place.object.empty()) json["object"] = place.object;
  json["message"] = status.message();
  return json;
}

// Comma and line before an element, and its key.
void JsonWriter::Separate(std::string_view key) {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.is_empty) Write(level.is_line ? ", " : ",");
  if (!level.is_line) Write(Line(levels_.size()));
  level.is_empty = false;
  if (level.closing == '}') Print("{}: ", Scalar(std::string(key)));
}

void JsonWriter::Begin(std::string_view key, char opening, char closing) {
  Separate(key);
  Write({&opening, 1});
  const bool is_document = levels_.empty();
  levels_.push_back({.closing = closing});
  if (is_document) Field("version", kJsonVersion);
}

void JsonWriter::Put(std::string_view key, const Json& value) {
  Separate(key);
  std::string text;
  Append(text, value, levels_.size());
  Write(text);
}

void JsonWriter::End() {
  const Level level = levels_.back();
  levels_.pop_back();
  const bool is_own_line = !level.is_empty && !level.is_line;
  Print("{}{}{}", is_own_line ? Line(levels_.size()) : "", level.closing,
        levels_.empty() ? "\n" : "");
}

void JsonWriter::Finish(ExitStatus status) {
  Field("exit_status", static_cast<int>(status));
  End();
}

void JsonWriter::Fail(const Status& error, ExitStatus status) {
  if (levels_.empty()) BeginObject();
  while (levels_.size() > 1) End();
  Field("error", StatusToJson(error));
  Finish(status);
}

}  // namespace sealpoint::tools
