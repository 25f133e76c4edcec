// SPDX-License-Identifier: Apache-2.0
#include "corpus.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <system_error>

#include "fingerprint.h"

namespace char_lm {
namespace {

namespace fs = std::filesystem;

bool ListTextFiles(const fs::path& directory, std::vector<fs::path>& files, std::string& error) {
  std::error_code failure;
  fs::directory_iterator entry(directory, failure);
  while (!failure && entry != fs::directory_iterator()) {
    const fs::file_status status = entry->symlink_status(failure);
    if (!failure && fs::is_regular_file(status)) {
      files.push_back(entry->path());
    }
    if (!failure) {
      entry.increment(failure);
    }
  }
  if (failure) {
    error = "cannot list " + directory.string() + ": " + failure.message();
    return false;
  }
  std::sort(files.begin(), files.end());
  return true;
}

bool AppendFile(const fs::path& path, std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return false;
  }
  std::array<char, 65536> block{};
  std::size_t count = 0;
  while ((count = std::fread(block.data(), 1, block.size(), file)) > 0) {
    text.append(block.data(), count);
  }
  const bool complete = std::ferror(file) == 0;
  return std::fclose(file) == 0 && complete;
}

}  // namespace

Corpus TokenizeText(const std::string& text) {
  const std::span<const char> characters(text);
  std::array<bool, 256> occurs{};
  for (const char c : characters) {
    occurs.at(static_cast<std::uint8_t>(c)) = true;
  }
  Corpus corpus;
  std::array<std::uint8_t, 256> token_of{};
  for (std::size_t value = 0; value < occurs.size(); ++value) {
    if (occurs.at(value)) {
      token_of.at(value) = static_cast<std::uint8_t>(corpus.vocabulary.size());
      corpus.vocabulary.push_back(static_cast<std::uint8_t>(value));
    }
  }
  corpus.tokens.reserve(text.size());
  for (const char c : characters) {
    corpus.tokens.push_back(token_of.at(static_cast<std::uint8_t>(c)));
  }
  corpus.fingerprint = Fingerprint(std::as_bytes(characters));
  return corpus;
}

std::optional<Corpus> LoadCorpus(const std::filesystem::path& directory, std::string& error) {
  std::vector<fs::path> files;
  if (!ListTextFiles(directory, files, error)) {
    return std::nullopt;
  }
  std::string text;
  for (const fs::path& file : files) {
    if (!AppendFile(file, text)) {
      error = "cannot read " + file.string();
      return std::nullopt;
    }
  }
  if (text.empty()) {
    error = "no text in the regular files of " + directory.string();
    return std::nullopt;
  }
  Corpus corpus = TokenizeText(text);
  corpus.file_count = files.size();
  return corpus;
}

}  // namespace char_lm
