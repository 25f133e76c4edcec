// SPDX-License-Identifier: Apache-2.0
#include "tools/common/text.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "sealpoint/bytes.h"

namespace sealpoint::tools {

std::string FormatBytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  // 999950 would be printed as 1000.0 of the smaller unit.
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

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

std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not a continuation byte
  }));
}

}  // namespace sealpoint::tools
