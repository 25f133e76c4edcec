// SPDX-License-Identifier: Apache-2.0
//
// Writes the inputs that the fuzz targets start from, made of the conformance corpus:
//   write_seeds FOLDER      into FOLDER/<target>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "fuzz/support/container.h"
#include "fuzz/support/damage.h"
#include "fuzz/support/foreign_seeds.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/reseal.h"

namespace sealpoint::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSeedMax = 32 * kKiB;

Bytes Joined(Bytes front, ByteSpan rest) {
  front.insert(front.end(), rest.begin(), rest.end());
  return front;
}

void Write(const fs::path& path, ByteSpan bytes) {
  if (bytes.size() > kSeedMax) return;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << AsText(bytes);
}

void AppendLe(Bytes& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i));
}

// The manifest behind its blob's counts, and each coded chunk behind its declared length.
void WritePartsOfBlob(const fs::path& folder, const std::string& name, ByteSpan file,
                      const testing::MiniBlob& blob) {
  const internal::format::BlobSections& at = blob.sections;
  if (at.manifest_end > file.size()) return;  // of a blob that was cut
  Bytes counts;
  AppendLe(counts, blob.records.size(), 4);
  AppendLe(counts, blob.records.empty() ? 0 : blob.records.back().shard + 1, 4);
  Write(folder / "manifest" / name,
        Joined(counts, file.subspan(at.manifest, at.manifest_end - at.manifest)));
  for (const internal::format::ChunkRecord& record : blob.records) {
    if (record.codec == Codec::kNone || record.offset + record.stored_size > file.size()) continue;
    Bytes head = {std::byte{0}, static_cast<std::byte>(record.codec), std::byte{3}, std::byte{0}};
    AppendLe(head, record.raw_size, 4);
    Write(folder / "codec" / (name + "-" + std::to_string(record.chunk)),
          Joined(head, file.subspan(record.offset, record.stored_size)));
  }
}

void WriteFiles(const fs::path& folder, const testing::CorpusEntry& entry) {
  for (const auto& [name, bytes] : entry.container.files) {
    if (name == "COMMIT") Write(folder / "marker" / entry.name, bytes);
    if (name == entry.container.index_name) Write(folder / "index" / entry.name, bytes);
  }
  for (const auto& [number, blob] : entry.container.blobs) {
    const auto found = entry.container.files.find(blob.name);
    if (found == entry.container.files.end()) continue;
    const std::string name = entry.name + "-" + std::to_string(number);
    Write(folder / "blob" / name, found->second);
    WritePartsOfBlob(folder, name, found->second, blob);
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
    Write(folder / "differential" / path.filename(), Joined({std::byte{0}}, input));
    for (unsigned part = 0; part < 5; ++part) {
      Write(path.string() + "-part-" + std::to_string(part), Damaged(input, 0, part, 8));
    }
    for (unsigned file = 0; file < 4; ++file) {
      Write(path.string() + "-file-" + std::to_string(file), Damaged(input, file, 0, 136));
    }
  }
}

// Each checkpoint unchanged, and with one change of each part, of two kinds each. The second reader
// is slow and gets one kind.
void WriteChanges(const fs::path& folder) {
  for (std::size_t kind = 0; kind < ContainerKindCount(); ++kind) {
    const Bytes input = {static_cast<std::byte>(kind), std::byte{kRepairMend | kRepairDigests}};
    Write(folder / "container" / std::to_string(kind), input);
    for (unsigned part = 0; part < kContainerPartCount; ++part) {
      for (const unsigned choice : {5u, 12u}) {
        Bytes change = {static_cast<std::byte>(part), std::byte{0}};
        change.resize(kContainerChangeBytes, static_cast<std::byte>(choice));
        const std::string name = std::to_string(kind) + "-" + std::to_string(part);
        Write(folder / "container" / (name + "-" + std::to_string(choice)), Joined(input, change));
        if (choice == 12) continue;
        Write(folder / "differential" / (name + "-changed"),
              Joined({std::byte{1}}, Joined(input, change)));
      }
    }
  }
}

// Headers of files of safetensors, each with the bytes behind it that it needs, and indices.
void WriteSafetensors(const fs::path& folder) {
  const std::string sharded =
      R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"t\":{\"saved_offsets\":[0]}}"},)"
      R"("t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const std::pair<unsigned, std::string> headers[] = {
      {0, "{}"},
      {0, R"({"__metadata__":{"format":"pt","k\u00e9\ud83d\ude00":"\n"},"e":{"dtype":"F64",)"
          R"("shape":[0,3],"data_offsets":[0,0]}})"},
      {12, R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
           R"("b":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]}}  )"},
      {2, R"({"s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}})"},
      {4, R"({"n":[[[-1.5e+3,true,null]]],"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})"},
      {4, sharded}};
  unsigned number = 0;
  for (const auto& [payload_size, text] : headers) {
    const Bytes head = {std::byte{1}, std::byte{0}, static_cast<std::byte>(payload_size)};
    const std::string name = std::to_string(++number);
    Write(folder / "safetensors" / ("header-" + name), Joined(head, AsBytes(text)));
    Bytes file = {std::byte{0}};
    AppendLe(file, text.size(), 8);
    file = Joined(file, AsBytes(text));
    file.resize(file.size() + payload_size);
    Write(folder / "safetensors" / ("file-" + name), file);
  }
  const std::string index =
      R"({"metadata":{"total_size":4,"x":[{}]},"weight_map":{"a":"sub/x.safetensors","b":"y"}})";
  Write(folder / "safetensors" / "index", Joined({std::byte{2}}, AsBytes(index)));
}

void WriteForeign(const fs::path& folder) {
  for (const auto& [name, input] : ForeignSeeds()) {
    Write(folder / "foreign" / name, AsBytes(input));
  }
}

// Inputs that only choose: noise of a few lengths.
void WriteNoise(const fs::path& folder) {
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const Bytes noise = testing::NoiseBytes(seed, std::uint64_t{16} << seed % 6);
    for (const char* const target : {"plan", "writer", "codec"}) {
      Write(folder / target / ("noise-" + std::to_string(seed)), noise);
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
  sealpoint::fuzz::WriteChanges(argv[1]);
  sealpoint::fuzz::WriteNoise(argv[1]);
  sealpoint::fuzz::WriteSafetensors(argv[1]);
  sealpoint::fuzz::WriteForeign(argv[1]);
  sealpoint::fuzz::WriteDamages(argv[1], 0);
  sealpoint::fuzz::WriteDamages(argv[1], sealpoint::testing::kSealAll);
  return 0;
}
