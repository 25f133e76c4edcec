// SPDX-License-Identifier: Apache-2.0
//
// Writes the inputs that the fuzz targets start from, made of the conformance corpus:
//   write_seeds FOLDER      into FOLDER/marker, index, blob and open
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "fuzz/support/damage.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/reseal.h"

namespace sealpoint::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSeedMax = 32 * kKiB;

void Write(const fs::path& path, ByteSpan bytes) {
  if (bytes.size() > kSeedMax) return;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << AsText(bytes);
}

void WriteFiles(const fs::path& folder, const testing::CorpusEntry& entry) {
  for (const auto& [name, bytes] : entry.container.files) {
    if (name == "COMMIT") Write(folder / "marker" / entry.name, bytes);
    if (name == entry.container.index_name) Write(folder / "index" / entry.name, bytes);
    if (!name.ends_with(".blob")) continue;
    Write(folder / "blob" / (entry.name + "-" + name.substr(0, 2)), bytes);
  }
}

// One damage: four bytes at an offset of a file or, in a blob, of one of its parts.
Bytes Damaged(Bytes input, unsigned file, unsigned part, unsigned offset) {
  for (const unsigned byte : {2u, part << 4 | file, offset, 0u, 1u, 0u, 0u, 0u}) {
    input.push_back(static_cast<std::byte>(byte));
  }
  return input;
}

// Each checkpoint undamaged, with one damage in each part of its first file, and with one behind
// the header of each of its first files; with digests as they were, or with all repaired.
void WriteDamages(const fs::path& folder, unsigned seals) {
  for (std::size_t kind = 0; kind < DamagedKindCount(); ++kind) {
    const Bytes input = {static_cast<std::byte>(kind), static_cast<std::byte>(seals)};
    const fs::path path = folder / "open" / (std::to_string(kind) + "-" + std::to_string(seals));
    Write(path, input);
    for (unsigned part = 0; part < 5; ++part) {
      Write(path.string() + "-part-" + std::to_string(part), Damaged(input, 0, part, 8));
    }
    for (unsigned file = 0; file < 4; ++file) {
      Write(path.string() + "-file-" + std::to_string(file), Damaged(input, file, 0, 136));
    }
  }
}

}  // namespace
}  // namespace sealpoint::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 64;
  }
  const auto corpus = sealpoint::testing::BuildCorpus();
  for (const auto& entry : corpus.entries()) sealpoint::fuzz::WriteFiles(argv[1], entry);
  sealpoint::fuzz::WriteDamages(argv[1], 0);
  sealpoint::fuzz::WriteDamages(argv[1], sealpoint::testing::kSealAll);
  return 0;
}
