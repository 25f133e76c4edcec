// SPDX-License-Identifier: Apache-2.0
//
// The storage learns of each range before it is read.
#include <vector>

#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

class RangesAheadTest : public LoadFixture {
 protected:
  void OpenTensor(std::uint64_t size, std::uint64_t chunk_size) {
    MiniSpec spec;
    spec.tensors.push_back(CutTensor("w", DType::kUInt8, {size}, Bytes(size),
                                     {Region::Of({.offset = {0}, .extent = {size}})}));
    spec.tensors.back().chunk_size = chunk_size;
    Open(spec);
  }
  // Loads, and checks that each range is named once, and every byte of it read. Of the reads, those
  // of a blob's tables come before.
  std::vector<NamedRange> NamedIn(const ReadRequest& request) {
    const auto report = checkpoint_->Load(request, LoadContract::Partial(), {.threads = 1});
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    const ReadLog log = storage_->log();
    std::vector<NamedRange> all = log.named;
    const std::size_t tables = all.empty() ? 0 : all.front().reads_before;
    for (NamedRange& named : all) {
      named.reads_before -= tables;
      std::uint64_t read_bytes = 0;
      for (const ReadCall& read : log.reads) {
        if (IsWithin(read, named.range)) read_bytes += read.size;
      }
      EXPECT_EQ(read_bytes, named.range.size);
    }
    return all;
  }

 private:
  static bool IsWithin(const ReadCall& read, const ReadCall& range) {
    return read.name == range.name && read.offset >= range.offset &&
           read.offset + read.size <= range.offset + range.size;
  }
};

TEST_F(RangesAheadTest, SmallRangesThatLieApartAreNamedSixteenAhead) {
  constexpr std::uint64_t kChunk = 4096;
  constexpr std::size_t kRanges = 40;
  OpenTensor(2 * kRanges * kChunk, kChunk);
  Bytes memory(kRanges * kChunk);
  ReadRequest request;
  for (std::size_t i = 0; i < kRanges; ++i) {
    request.Add("w", Region::Of({.offset = {2 * i * kChunk}, .extent = {kChunk}}),
                MutableMemoryView::Host(MutableByteSpan(memory).subspan(i * kChunk, kChunk)));
  }
  const std::vector<NamedRange> named = NamedIn(request);
  ASSERT_EQ(named.size(), kRanges);
  for (std::size_t i = 0; i < kRanges; ++i) {
    EXPECT_EQ(named[i].range.size, kChunk);
    EXPECT_EQ(named[i].reads_before, i < 16 ? 0 : i - 16) << i;
  }
}

TEST_F(RangesAheadTest, LargeRangesAreNamedEightMebibytesAhead) {
  constexpr std::uint64_t kSize = 32 * kMiB;
  OpenTensor(kSize, 4 * kMiB);
  Bytes memory(kSize);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(memory));
  const std::vector<NamedRange> named = NamedIn(request);
  ASSERT_GT(named.size(), 2u);
  std::uint64_t before = 0;  // bytes of the ranges behind the first, up to this one
  for (std::size_t i = 1; i < named.size(); ++i) {
    if (named[i].reads_before == 0) before += named[i].range.size;
  }
  EXPECT_EQ(before, 8 * kMiB);
  EXPECT_GT(named.back().reads_before, 0u);
}

}  // namespace
}  // namespace sealpoint::testing
