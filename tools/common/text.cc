// SPDX-License-Identifier: Apache-2.0
#include "tools/common/text.h"

#include <fmt/format.h>
#include <locale.h>
#include <time.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cwchar>

#include "sealpoint/bytes.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"

namespace sealpoint::tools {
namespace {

// Makes this thread's character functions those of UTF-8, whatever the user's locale is: names in
// checkpoints are UTF-8. Without that locale (it is part of glibc from 2.35 on) all that is not
// ASCII counts as a column per byte.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(Get())) {}
  ~Utf8Locale() { ::uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  static locale_t Get() {
    static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return locale;
  }
  const locale_t before_;
};

}  // namespace

std::string FormatPowerOfTwo(std::uint64_t bytes) {
  if (bytes < kMiB) return fmt::format("{} KiB", bytes / kKiB);
  return fmt::format("{} MiB", bytes / kMiB);
}

std::string FormatCount(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string FormatSeconds(double seconds) {
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  const std::uint64_t hours = whole / 3600;
  const std::uint64_t minutes = whole / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

std::string FormatTime(std::uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / 1'000'000'000);
  struct tm parts = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return fmt::format("{} s since 1970", seconds);
  std::array<char, 64> text{};
  const std::size_t size = ::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), size};
}

std::string FormatStep(std::uint64_t step) {
  return step == kNoStep ? "none" : fmt::format("{}", step);
}

std::string FormatParent(const AttemptId& parent) {
  return parent.is_zero() ? "none" : parent.ToHex();
}

std::string FormatMesh(const std::vector<std::pair<std::string, std::uint32_t>>& axes) {
  std::string text;
  for (const auto& [axis, size] : axes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", Printable(axis), size);
  }
  return text;
}

std::size_t Width(std::string_view text) {
  const Utf8Locale locale;
  std::size_t width = 0;
  std::mbstate_t state = {};
  while (!text.empty()) {
    wchar_t character = 0;
    const std::size_t size = std::mbrtowc(&character, text.data(), text.size(), &state);
    // Only text that is not printable has such bytes; each counts as one column.
    const bool is_good = size != 0 && size <= text.size();
    const int columns = is_good ? ::wcwidth(character) : 1;
    width += columns < 0 ? 1 : static_cast<std::size_t>(columns);
    if (!is_good) state = {};
    text.remove_prefix(is_good ? size : 1);
  }
  return width;
}

std::string Padded(std::string_view text, std::size_t width) {
  const std::size_t used = Width(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

void PrintFact(std::string_view label, std::string_view value) {
  Print("{:<11} {}\n", label, value);
}

void Table::Add(std::vector<std::string> row) {
  widths_.resize(std::max(widths_.size(), row.size()));
  for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], Width(row[i]));
  rows_.push_back(std::move(row));
}

void Table::Print() const {
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths_[i] - Width(row[i]), ' ');
      const bool is_left = columns_[std::min(i, columns_.size() - 1)] == Align::kLeft;
      line += (i == 0 ? "" : "  ") + (is_left ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    tools::Print("{}\n", &row == &rows_.front() ? Bold(line) : line);
  }
}

}  // namespace sealpoint::tools
