// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/box.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sealpoint::tools {
namespace {

template <typename... Args>
Status BoxError(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, "--box: " + fmt::format(format, std::forward<Args>(args)...)};
}

std::string WithoutSpaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out.push_back(c);
  }
  if (out.size() >= 2 && out.front() == '[' && out.back() == ']') {
    out = out.substr(1, out.size() - 2);
  }
  return out;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One dimension; nothing if the text is of another form.
std::optional<std::pair<std::uint64_t, std::uint64_t>> ParseRange(std::string_view text,
                                                                  std::uint64_t extent) {
  const std::size_t colon = text.find(':');
  const std::string_view first = text.substr(0, colon);
  const auto begin = first.empty() && colon == 0 ? 0 : ParseNumber(first);
  if (!begin) return std::nullopt;
  if (colon == std::string_view::npos) return std::pair(*begin, *begin + 1);
  const std::string_view last = text.substr(colon + 1);
  const auto end = last.empty() ? extent : ParseNumber(last);
  if (!end) return std::nullopt;
  return std::pair(*begin, *end);
}

}  // namespace

Result<Box> ParseBox(std::string_view text, const Shape& shape) {
  Box box{.offset = std::vector<std::uint64_t>(shape.size()), .extent = shape};
  const std::string plain = WithoutSpaces(text);
  if (plain.empty()) return box;
  const std::vector<std::string_view> parts = Split(plain, ',');
  if (parts.size() > shape.size()) {
    return BoxError("{} has {} dimensions, the shape is {}", text, parts.size(),
                    ShapeToString(shape));
  }
  for (std::size_t d = 0; d < parts.size(); ++d) {
    const auto range = ParseRange(parts[d], shape[d]);
    if (!range) return BoxError("{} is not a range, expected one such as 0:4, 7 or 2:", parts[d]);
    const auto [begin, end] = *range;
    if (begin >= end || end > shape[d]) {
      return BoxError("{} is empty or outside of the shape {}", parts[d], ShapeToString(shape));
    }
    box.offset[d] = begin;
    box.extent[d] = end - begin;
  }
  return box;
}

}  // namespace sealpoint::tools
