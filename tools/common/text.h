// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_TEXT_H_
#define SEALPOINT_TOOLS_COMMON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"

// How the tools write numbers and names for people.

namespace sealpoint::tools {

// "4 MiB", "64 KiB": binary units, for sizes that are powers of two from 1 KiB on.
std::string FormatPowerOfTwo(std::uint64_t bytes);
// "1 blob", "4 blobs".
std::string FormatCount(std::uint64_t count, std::string_view noun);
// "0.02 s", "3:05", "2:10:07".
std::string FormatSeconds(double seconds);
// "2026-11-21 08:19:03 UTC".
std::string FormatTime(std::uint64_t unix_ns);
// "none" for kNoStep.
std::string FormatStep(std::uint64_t step);
// "none" for zero.
std::string FormatParent(const AttemptId& parent);
// "data 4 x tensor 2"
std::string FormatMesh(const std::vector<std::pair<std::string, std::uint32_t>>& axes);

// Columns of printable text on a terminal: two for wide characters, none for combining ones.
std::size_t Width(std::string_view text);
// The text with spaces after it up to `width` columns.
std::string Padded(std::string_view text, std::size_t width);

// "path        /data/run7": a line of facts.
void PrintFact(std::string_view label, std::string_view value);

// Columns as wide as their longest entry, at least two spaces apart.
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  // The columns beyond those given are aligned as the last of them.
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}

  void Add(std::vector<std::string> row);
  // The first row in bold: it names the columns.
  void Print() const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_TEXT_H_
