// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace char_lm {

// Text as token numbers. The vocabulary is the set of byte values that occur, in ascending order.
struct Corpus {
  std::vector<std::uint8_t> tokens;      // indices into `vocabulary`
  std::vector<std::uint8_t> vocabulary;  // token -> byte value
  std::uint64_t fingerprint = 0;         // of the text; tells a changed corpus on resume
  std::size_t file_count = 0;
};

// Makes a corpus of raw text.
Corpus TokenizeText(const std::string& text);

// Reads every regular file directly inside `directory`, in ascending order of name. Symbolic links
// are skipped: distributions add aliases (GPL -> GPL-3) that would only repeat text. On failure
// returns nullopt and says why in `error`.
std::optional<Corpus> LoadCorpus(const std::filesystem::path& directory, std::string& error);

}  // namespace char_lm
