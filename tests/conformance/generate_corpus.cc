// SPDX-License-Identifier: Apache-2.0
//
// Writes the conformance corpus: one directory per entry.
//   generate_corpus FOLDER                 the corpus; FOLDER is emptied of earlier entries
//   generate_corpus --digests FILE         the digest of each file, as
//   tests/conformance/digests.txt
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "sealpoint/digest.h"
#include "tests/conformance/corpus.h"

namespace sealpoint::testing {
namespace {

namespace fs = std::filesystem;

void WriteEntry(const fs::path& folder, const CorpusEntry& entry) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, bytes] : entry.container.files) {
    std::ofstream file(folder / name, std::ios::binary);
    file << AsText(bytes);
  }
  for (const auto& [name, target] : entry.links) fs::create_symlink(target, folder / name);
  for (const std::string& name : entry.directories) fs::create_directory(folder / name);
}

// Entries of names that are not made any more would be checked by nobody.
void RemoveEarlierEntries(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& found : fs::directory_iterator(folder)) {
    const std::string name = found.path().filename().string();
    const bool is_entry = name.starts_with("good-") || name.starts_with("bad-") ||
                          name.starts_with("several-") || name.starts_with("step-");
    if (is_entry) fs::remove_all(found.path());
  }
}

void WriteDigests(const fs::path& path, const Corpus& corpus) {
  std::ofstream out(path);
  for (const CorpusEntry& entry : corpus.entries()) {
    for (const auto& [name, bytes] : entry.container.files) {
      out << ComputeDigest(bytes).ToHex() << ' ' << entry.name << '/' << name << '\n';
    }
  }
}

int Run(int argc, char** argv) {
  const bool digests = argc == 3 && std::string_view(argv[1]) == "--digests";
  if (!digests && (argc != 2 || argv[1][0] == '-')) {
    std::cerr << "usage: generate_corpus FOLDER | --digests FILE\n";
    return 64;
  }
  const Corpus corpus = BuildCorpus();
  if (digests) {
    WriteDigests(argv[2], corpus);
    return 0;
  }
  RemoveEarlierEntries(argv[1]);
  for (const CorpusEntry& entry : corpus.entries()) {
    WriteEntry(fs::path(argv[1]) / entry.name, entry);
  }
  return 0;
}

}  // namespace
}  // namespace sealpoint::testing

int main(int argc, char** argv) { return sealpoint::testing::Run(argc, argv); }
