// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/digest.h"
#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"

// The checkpoints of spec/container.md section 7 and of spec/example.md, and the texts there. A
// block that begins with "```hex NAME" holds the file NAME: 16 bytes a line behind their offset; a
// line "*" stands for repetitions of the line above it, up to the offset of the next one.

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

constexpr std::array<float, 4> kWeights = {1.0F, -2.0F, 0.5F, 3.0F};
constexpr std::string_view kSeed = "seed=42";

Bytes BytesOf(const void* data, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(data);
  return {begin, begin + size};
}

MiniContainer BuildExample() {
  MiniSpec spec;
  spec.attempt = MiniSpec::MakeId(0xa7);
  spec.step = 42;
  spec.created_unix_ns = 1'700'000'000'000'000'000;
  spec.provenance = {{"sealpoint.writer", "sealpoint 0.1.0"}};
  const Shape shape = {2, 2};
  spec.tensors.push_back({.name = "w",
                          .dtype = DType::kF32,
                          .shape = shape,
                          .chunk_size = kChunkSizeDefaultBytes,
                          .shards = {{.region = Region::Whole(shape),
                                      .bytes = BytesOf(kWeights.data(), sizeof(kWeights))}}});
  spec.objects.push_back({.name = "rng",
                          .bytes = BytesOf(kSeed.data(), kSeed.size()),
                          .media_type = "text/plain; charset=utf-8",
                          .chunk_size = kChunkSizeDefaultBytes});
  return BuildMini(spec);
}

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  return BytesOf(values.data(), values.size() * sizeof(T));
}

// 4096 bytes that are 1024 times the f32 1.0 (00 00 80 3f), split: one zstd frame of three blocks,
// each one byte repeated. Written by hand, so that it is the same under every zstd.
Bytes FrameOfOnes() {
  const std::vector<std::uint8_t> frame = {0x28, 0xb5, 0x2f, 0xfd, 0x60, 0x00, 0x0f,
                                           0x02, 0x40, 0x00, 0x00, 0x02, 0x20, 0x00,
                                           0x80, 0x03, 0x20, 0x00, 0x3f};
  return BytesOf(frame);
}

// Stores the first shard of blob 1, one plain chunk of 4096 bytes, as that frame.
void StoreOnesAsAFrame(MiniHooks& hooks) {
  constexpr std::ptrdiff_t kBegin = format::kHeaderSize;
  constexpr std::ptrdiff_t kRaw = 4096;
  constexpr std::ptrdiff_t kPlace = format::kSectionAlignment;  // with the padding behind it
  hooks.chunk_area = [](int blob, Bytes& area) {
    if (blob != 1) return;
    area.erase(area.begin() + kBegin + kPlace, area.begin() + kBegin + kRaw);
    std::fill_n(area.begin() + kBegin, kPlace, std::byte{0});
    std::ranges::copy(FrameOfOnes(), area.begin() + kBegin);
  };
  hooks.records = [](int blob, std::vector<format::ChunkRecord>& records) {
    if (blob != 1) return;
    for (format::ChunkRecord& record : records) record.offset -= kRaw - kPlace;
    records[0].offset = kBegin;
    records[0].stored_size = static_cast<std::uint32_t>(FrameOfOnes().size());
    records[0].codec = Codec::kByteSplitZstd;
    records[0].stored_digest = ComputeDigest(FrameOfOnes());
  };
}

Bytes Elements(std::string_view name) {
  if (name == "big") return Bytes(65536, std::byte{0x5a});
  if (name == "const") return BytesOf(std::vector<float>(1024, 1.0F));
  if (name == "list") return BytesOf(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  return BytesOf(std::vector<std::int16_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

void CutIntoBlobs(MiniSpec& spec, std::string name, DType dtype, const Shape& shape,
                  const std::vector<Region>& regions, const std::vector<int>& blobs) {
  const Bytes bytes = Elements(name);
  spec.tensors.push_back(CutTensor(std::move(name), dtype, shape, bytes, regions, blobs));
}

MiniContainer BuildSecondExample() {
  MiniSpec spec;
  spec.attempt = MiniSpec::MakeId(0xb8);
  spec.parent = MiniSpec::MakeId(0xa7);
  spec.sequence = 2;
  spec.step = 43;
  spec.created_unix_ns = 1'700'000'001'000'000'000;
  spec.mesh = {{"data", 2}};
  spec.provenance = {{"metric.eval_loss", "1.832"}, {"sealpoint.writer", "sealpoint 0.1.0"}};
  CutIntoBlobs(spec, "big", DType::kUInt8, {65536}, {Region::Whole({65536})}, {0});
  spec.tensors.back().chunk_size = 32768;
  CutIntoBlobs(spec, "const", DType::kF32, {4, 256}, {Region::Whole({4, 256})}, {1});
  CutIntoBlobs(spec, "list", DType::kUInt8, {3, 3},
               {Region{{{0, 0}, {3, 3}}, {0, 4}}, Region{{{1, 0}, {2, 3}}, {1, 6}}}, {0, 1});
  CutIntoBlobs(spec, "runs", DType::kInt16, {2, 4},
               {Region{{{0, 0}, {2, 2}}, {0, 3}}, Region{{{0, 0}, {2, 2}}, {3, 4}},
                Region::Of({{0, 2}, {2, 2}})},
               {0, 1, 0});
  spec.tensors.back().placement = {"data: flattened"};
  spec.objects = {
      {.name = "args", .bytes = BytesOf("lr=0.1", 6), .media_type = "text/plain", .blob = 1},
      {.name = "note", .bytes = {}, .media_type = "text/plain", .blob = 1}};
  StoreOnesAsAFrame(spec.hooks);
  MiniContainer container = BuildMini(spec);
  const format::MarkerBytes marker = format::EncodeMarker(
      {.kind = format::MarkerKind::kVoid, .attempt = MiniSpec::MakeId(0xc9), .step = 44});
  container.files["void/COMMIT"] = Bytes(marker.begin(), marker.end());
  return container;
}

std::string DumpLine(const Bytes& bytes, std::size_t at) {
  std::string line;
  for (std::size_t i = at; i < std::min(at + 16, bytes.size()); ++i) {
    char text[8];
    std::snprintf(text, sizeof(text), "%s%02x", i % 16 == 8 ? "  " : " ",
                  std::to_integer<unsigned>(bytes[i]));
    line.append(text);
  }
  return line;
}

std::string Offset(std::size_t at) {
  char text[24];
  std::snprintf(text, sizeof(text), "%04zx", at);
  return text;
}

std::string Dump(const Bytes& bytes) {
  std::string text;
  std::string above;
  bool is_left_out = false;
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    const std::string line = DumpLine(bytes, at);
    if (line != above) {
      text.append(Offset(at)).append(" ").append(line).append("\n");
    } else if (!is_left_out) {
      text.append("*\n");
    }
    is_left_out = line == above;
    above = line;
  }
  return text + Offset(bytes.size()) + "\n";
}

// The blocks of a document of the specification by file name.
std::map<std::string, std::string> ReadBlocks(const std::string& document) {
  std::ifstream in(SEALPOINT_SPEC_DIR "/" + document);
  std::map<std::string, std::string> blocks;
  std::string* block = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```hex ")) {
      block = &blocks[line.substr(7)];
    } else if (line.starts_with("```")) {
      block = nullptr;
    } else if (block != nullptr) {
      block->append(line).append("\n");
    }
  }
  return blocks;
}

Bytes ParseBlock(const std::string& block) {
  std::istringstream in(block);
  Bytes bytes;
  bool repeats = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "*") {
      repeats = true;
      continue;
    }
    std::istringstream words(line);
    std::string word;
    words >> word;
    const std::size_t offset = std::stoul(word, nullptr, 16);
    while (repeats && bytes.size() < offset) bytes.push_back(bytes[bytes.size() - 16]);
    repeats = false;
    EXPECT_EQ(bytes.size(), offset) << "in line: " << line;
    while (words >> word) bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}

// The examples in memory, from the bytes of a text alone: /example and /example/void.
std::shared_ptr<Storage> StoreWhatTheTextShows(const std::string& document) {
  std::map<std::string, Bytes> files;
  std::map<std::string, Bytes> void_files;
  for (const auto& [name, block] : ReadBlocks(document)) {
    if (name == "void/COMMIT") {
      void_files["COMMIT"] = ParseBlock(block);
    } else {
      files[name] = ParseBlock(block);
    }
  }
  std::shared_ptr<Storage> storage = MemoryStorage();
  StoreFiles(*storage, "/example", files);
  StoreFiles(*storage, "/void", void_files);
  return storage;
}

void ExpectShown(const std::string& document, const MiniContainer& made) {
  std::map<std::string, std::string> dumps;
  for (const auto& [name, bytes] : made.files) dumps[name] = Dump(bytes);
  const std::map<std::string, std::string> shown = ReadBlocks(document);
  EXPECT_EQ(shown.size(), dumps.size());
  for (const auto& [name, dump] : dumps) {
    const auto found = shown.find(name);
    EXPECT_TRUE(found != shown.end() && found->second == dump)
        << "spec/" << document << " must show:\n```hex " << name << "\n"
        << dump << "```";
  }
}

TEST(SpecExample, TextShowsWhatTheEncodersMake) { ExpectShown("container.md", BuildExample()); }
TEST(SpecExample, SecondTextShowsWhatTheEncodersMake) {
  ExpectShown("example.md", BuildSecondExample());
}

TEST(SpecExample, TextIsAValidCheckpoint) {
  const auto report =
      Verify("/example", {.storage = StoreWhatTheTextShows("container.md")}).value();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_THAT(report.violations, ::testing::IsEmpty());
  EXPECT_THAT(report.notes, ::testing::IsEmpty());
  EXPECT_EQ(report.step, 42U);
}

TEST(SpecExample, TextIsReadAsItSays) {
  const auto opened =
      Checkpoint::Open("/example", {.storage = StoreWhatTheTextShows("container.md")});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  const Checkpoint& checkpoint = **opened;
  std::array<float, 4> weights{};
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(weights));
  ASSERT_TRUE(checkpoint.Load(request).ok());
  EXPECT_EQ(weights, kWeights);
  EXPECT_EQ(checkpoint.ReadObject("rng").value(), BytesOf(kSeed.data(), kSeed.size()));
}

TEST(SpecExample, SecondTextIsReadAsItSays) {
  const std::shared_ptr<Storage> storage = StoreWhatTheTextShows("example.md");
  const VerifyReport report = Verify("/example", {.storage = storage}).value();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_THAT(report.violations, ::testing::IsEmpty());
  const auto opened = Checkpoint::Open("/example", {.storage = storage});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  const Checkpoint& checkpoint = **opened;
  std::map<std::string, Bytes> loaded;
  ReadRequest request;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    Bytes& bytes = loaded[tensor.name];
    bytes.resize(tensor.raw_bytes);
    request.Add(tensor.name, MutableMemoryView::Host(bytes));
  }
  ASSERT_TRUE(checkpoint.Load(request).ok());
  EXPECT_EQ(loaded.size(), 4U);
  for (const auto& [name, bytes] : loaded) EXPECT_EQ(bytes, Elements(name)) << name;
  EXPECT_EQ(checkpoint.ReadObject("args").value(), BytesOf("lr=0.1", 6));
  EXPECT_EQ(checkpoint.ReadObject("note").value(), Bytes());
}

TEST(SpecExample, VoidMarkerIsUncommitted) {
  const VerifyReport report =
      Verify("/void", {.storage = StoreWhatTheTextShows("example.md")}).value();
  EXPECT_EQ(report.verdict, Verdict::kUncommitted);
  ASSERT_THAT(report.violations, ::testing::SizeIs(1));
  EXPECT_EQ(report.violations[0].place().rule, "R-MRK-09");
}

// The vectors of spec/registries.md: | length | digest |.
TEST(SpecExample, DigestsAreThoseOfTheVectors) {
  std::ifstream in(SEALPOINT_SPEC_DIR "/registries.md");
  int count = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    std::string bar, digest;
    std::size_t size = 0;
    if (!(cells >> bar >> size >> bar >> digest) || digest.size() != 2 * sizeof(Digest)) continue;
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 251);
    EXPECT_EQ(ComputeDigest(bytes).ToHex(), digest) << size;
    ++count;
  }
  EXPECT_EQ(count, 16);
}

}  // namespace
}  // namespace sealpoint::testing
