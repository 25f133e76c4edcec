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

#include "sealpoint/checkpoint.h"
#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"

// The checkpoint of spec/container.md section 7, and the text there. A block that begins with
// "```hex NAME" holds the file NAME: 16 bytes a line behind their offset; a line "*" stands for
// repetitions of the line above it, up to the offset of the next one.

namespace sealpoint::testing {
namespace {

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

// The blocks of the specification by file name.
std::map<std::string, std::string> ReadBlocks() {
  std::ifstream in(SEALPOINT_SPEC_DIR "/container.md");
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

// The example in memory, from the bytes of the text alone.
std::shared_ptr<Storage> StoreWhatTheTextShows() {
  std::map<std::string, Bytes> files;
  for (const auto& [name, block] : ReadBlocks()) files[name] = ParseBlock(block);
  std::shared_ptr<Storage> storage = MemoryStorage();
  StoreFiles(*storage, "/example", files);
  return storage;
}

TEST(SpecExample, TextShowsWhatTheEncodersMake) {
  const MiniContainer made = BuildExample();
  std::map<std::string, std::string> dumps;
  for (const auto& [name, bytes] : made.files) dumps[name] = Dump(bytes);
  const std::map<std::string, std::string> shown = ReadBlocks();
  EXPECT_EQ(shown.size(), dumps.size());
  for (const auto& [name, dump] : dumps) {
    const auto found = shown.find(name);
    EXPECT_TRUE(found != shown.end() && found->second == dump)
        << "spec/container.md must show:\n```hex " << name << "\n"
        << dump << "```";
  }
}

TEST(SpecExample, TextIsAValidCheckpoint) {
  const auto report = Verify("/example", {.storage = StoreWhatTheTextShows()}).value();
  EXPECT_EQ(report.verdict, Verdict::kCommitted);
  EXPECT_THAT(report.violations, ::testing::IsEmpty());
  EXPECT_THAT(report.notes, ::testing::IsEmpty());
  EXPECT_EQ(report.step, 42U);
}

TEST(SpecExample, TextIsReadAsItSays) {
  const auto opened = Checkpoint::Open("/example", {.storage = StoreWhatTheTextShows()});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  const Checkpoint& checkpoint = **opened;
  std::array<float, 4> weights{};
  ReadRequest request;
  request.Add("w", MemoryView::MutableHost(weights.data()));
  ASSERT_TRUE(checkpoint.Load(request).ok());
  EXPECT_EQ(weights, kWeights);
  EXPECT_EQ(checkpoint.ReadObject("rng").value(), BytesOf(kSeed.data(), kSeed.size()));
}

}  // namespace
}  // namespace sealpoint::testing
