// SPDX-License-Identifier: Apache-2.0
#include "tools/common/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace sealpoint::tools {
namespace {

bool UsesColour() {
  static const bool uses = [] {
    const char* const no_color = std::getenv("NO_COLOR");
    return (no_color == nullptr || *no_color == '\0') && StdoutIsTerminal();
  }();
  return uses;
}

// Parameters of the escape sequence "select graphic rendition".
constexpr int kBold = 1;
constexpr int kRed = 31;
constexpr int kGreen = 32;
constexpr int kYellow = 33;

std::string Rendered(std::string_view text, int rendition) {
  if (!UsesColour()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", rendition, text);
}

}  // namespace

bool StdoutIsTerminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::size_t OutputColumns() {
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kLeast = 40;
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return std::max<std::size_t>(size.ws_col, kLeast);
}

std::string Coloured(std::string_view text, Verdict verdict) {
  switch (verdict) {
    case Verdict::kCommitted:
      return Rendered(text, kGreen);
    case Verdict::kUncommitted:
    case Verdict::kUnsupported:
      return Rendered(text, kYellow);
    default:
      return Rendered(text, kRed);
  }
}

std::string Bold(std::string_view text) { return Rendered(text, kBold); }

}  // namespace sealpoint::tools
