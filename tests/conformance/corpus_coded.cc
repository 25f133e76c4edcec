// SPDX-License-Identifier: Apache-2.0
//
// Coded chunks, good and bad. The zstd frames are written by hand (RFC 8878), so that each bad one
// is right in all other respects and the bytes do not depend on the zstd that is installed.
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/stored_chunks.h"

namespace sealpoint::testing {
namespace {

using internal::format::ChunkRecord;

constexpr std::size_t kChunk = 4096;
constexpr std::uint8_t kWindowOf1KiB = 0;
constexpr std::uint8_t kWindowOf4KiB = 2 << 3;
constexpr std::uint8_t kWindowOf8KiB = 3 << 3;
constexpr unsigned kReservedBlock = 3;
constexpr std::uint8_t kChunkLow = (kChunk - kContentSizeOf2BytesMin) & 0xff;
constexpr std::uint8_t kChunkHigh = (kChunk - kContentSizeOf2BytesMin) >> 8;

Bytes GoodFrameHeader() {
  return FrameHeader({kContentSizeOf2Bytes | kSingleSegment, kChunkLow, kChunkHigh});
}

// What every chunk here decodes to before the bytes are put together: noise, then 'x'.
constexpr std::size_t kNoise = 1024;
Bytes DecodedFrame() {
  Bytes bytes = NoiseBytes(30, kNoise);
  bytes.resize(kChunk, std::byte{'x'});
  return bytes;
}
void AppendBlocks(Bytes& out, std::size_t run = kChunk - kNoise) {
  AppendPlainBlock(out, NoiseBytes(30, kNoise));
  AppendRunBlock(out, run);
}
Bytes GoodFrame() {
  Bytes frame = GoodFrameHeader();
  AppendBlocks(frame);
  return frame;
}
// With a content checksum: the low 32 bits of XXH64 over DecodedFrame().
Bytes FrameWithChecksum(std::uint32_t checksum) {
  Bytes frame =
      FrameHeader({kContentSizeOf2Bytes | kSingleSegment | kChecksum, kChunkLow, kChunkHigh});
  AppendBlocks(frame);
  AppendLe(frame, checksum, 4);
  return frame;
}
constexpr std::uint32_t kChecksumOfDecodedFrame = 0xd58cd59f;

// Puts elements of 4 bytes together from four planes.
Bytes JoinPlanes(const Bytes& planes) {
  Bytes bytes(planes.size());
  const std::size_t count = planes.size() / 4;
  for (std::size_t i = 0; i < planes.size(); ++i) bytes[i % count * 4 + i / count] = planes[i];
  return bytes;
}

// A tensor "coded" of f32, alone in its blob, whose chunks are stored so.
MiniSpec CodedSpec(const Bytes& raw, const std::vector<StoredChunk>& chunks, int blob = 0,
                   std::uint64_t chunk_size = kChunk) {
  MiniSpec spec;
  const Shape shape = {raw.size() / 4};
  spec.tensors.push_back(
      CutTensor("coded", DType::kF32, shape, raw, {Region::Whole(shape)}, {blob}));
  spec.tensors[0].chunk_size = chunk_size;
  std::map<std::size_t, StoredChunk> by_record;
  for (std::size_t i = 0; i < chunks.size(); ++i) by_record[i] = chunks[i];
  StoreChunks(spec, blob, by_record);
  return spec;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Frames whose first block has the largest size, or one byte more: that of the window, and 128 KiB.
constexpr std::size_t kBlockMax = 128 * kKiB;
Bytes FrameOfBlocksInAWindow(std::size_t first) {
  Bytes frame = FrameHeader({kContentSizeOf2Bytes, kWindowOf1KiB, kChunkLow, kChunkHigh});
  AppendPlainBlock(frame, NoiseBytes(30, kNoise));
  AppendRunBlock(frame, first, false);
  AppendRunBlock(frame, kNoise, false);
  AppendRunBlock(frame, kChunk - 2 * kNoise - first);
  return frame;
}
Bytes FrameOfLargeBlocks(std::size_t first) {
  Bytes frame = FrameHeader({kContentSizeOf4Bytes | kSingleSegment});
  AppendLe(frame, 2 * kBlockMax, 4);
  AppendRunBlock(frame, first, false);
  AppendRunBlock(frame, 2 * kBlockMax - first);
  return frame;
}
MiniSpec SpecOfLargeBlocks(std::size_t first) {
  return CodedSpec(Bytes(2 * kBlockMax, std::byte{'x'}), {{.stored = FrameOfLargeBlocks(first)}}, 0,
                   2 * kBlockMax);
}

void AddGoodCoded(Corpus& corpus) {
  const Bytes raw = DecodedFrame();
  Bytes windowed = FrameHeader({kContentSizeOf2Bytes, kWindowOf4KiB, kChunkLow, kChunkHigh});
  AppendBlocks(windowed);
  corpus.Add("good-zstd", CodedSpec(raw + raw, {{.stored = GoodFrame()}, {.stored = windowed}}));
  corpus.Add("good-zstd_with_checksum",
             CodedSpec(raw, {{.stored = FrameWithChecksum(kChecksumOfDecodedFrame)}}));
  corpus.Add("good-byte_split", CodedSpec(JoinPlanes(raw), {{Codec::kByteSplitZstd, GoodFrame()}}));
  corpus.Add("good-zstd_blocks_of_the_window",
             CodedSpec(raw, {{.stored = FrameOfBlocksInAWindow(kNoise)}}));
  corpus.Add("good-zstd_blocks_of_128_KiB", SpecOfLargeBlocks(kBlockMax));
  const Bytes noise = NoiseBytes(31, kChunk);
  corpus.Add("good-coded_chunk_stored_raw",
             CodedSpec(raw + noise + JoinPlanes(raw), {{.stored = GoodFrame()},
                                                       {Codec::kNone, noise},
                                                       {Codec::kByteSplitZstd, GoodFrame()}}));
}

void AddBadFrame(Corpus& corpus, std::string name, Bytes stored) {
  corpus.Add(std::move(name), CodedSpec(DecodedFrame(), {{.stored = std::move(stored)}}));
}

Bytes FrameWithHeader(std::initializer_list<std::uint8_t> header) {
  Bytes frame = FrameHeader(header);
  AppendBlocks(frame);
  return frame;
}

void AddBadFrames(Corpus& corpus) {
  Bytes skippable;
  AppendLe(skippable, 0x184d2a50, 4);
  AppendLe(skippable, 4, 4);
  AppendLe(skippable, 0, 4);
  AddBadFrame(corpus, "bad-R-COD-02-skippable_frame", skippable + GoodFrame());
  AddBadFrame(corpus, "bad-R-COD-02-no_frame", Bytes(100, std::byte{'x'}));
  AddBadFrame(corpus, "bad-R-COD-03-content_size",
              FrameWithHeader({kContentSizeOf2Bytes | kSingleSegment,
                               static_cast<std::uint8_t>(kChunkLow + 1), kChunkHigh}));
  AddBadFrame(corpus, "bad-R-COD-03-no_content_size", FrameWithHeader({0, kWindowOf4KiB}));
  AddBadFrame(corpus, "bad-R-COD-04-dictionary",
              FrameWithHeader({kContentSizeOf2Bytes | kSingleSegment | kDictionaryIdOf1Byte, 0,
                               kChunkLow, kChunkHigh}));
  AddBadFrame(corpus, "bad-R-COD-05-window",
              FrameWithHeader({kContentSizeOf2Bytes, kWindowOf8KiB, kChunkLow, kChunkHigh}));
  Bytes empty_frame = FrameHeader({kSingleSegment, 0});
  AppendLe(empty_frame, 1, 3);
  AddBadFrame(corpus, "bad-R-COD-06-second_frame", GoodFrame() + empty_frame);
  Bytes cut = GoodFrame();
  cut.pop_back();
  AddBadFrame(corpus, "bad-R-COD-06-cut_frame", cut);
  Bytes reserved = GoodFrameHeader();
  AppendPlainBlock(reserved, NoiseBytes(30, kNoise));
  AppendLe(reserved, (kChunk - kNoise) << 3 | kReservedBlock << 1 | 1, 3);
  AddBadFrame(corpus, "bad-R-COD-06-reserved_block", reserved);
  AddBadFrame(corpus, "bad-R-COD-06-block_beyond_the_window", FrameOfBlocksInAWindow(kNoise + 1));
  corpus.Add("bad-R-COD-06-block_beyond_128_KiB", SpecOfLargeBlocks(kBlockMax + 1));
  AddBadFrame(corpus, "bad-R-COD-07-checksum", FrameWithChecksum(kChecksumOfDecodedFrame ^ 1));
  Bytes short_content = GoodFrameHeader();
  AppendBlocks(short_content, kChunk - kNoise - 1);
  AddBadFrame(corpus, "bad-R-COD-07-short_content", short_content);
  Bytes long_content = GoodFrameHeader();
  AppendBlocks(long_content, kChunk - kNoise + 1);
  AddBadFrame(corpus, "bad-R-COD-07-long_content", long_content);
}

}  // namespace

MiniSpec FingerprintedSpec() {
  const Bytes raw = DecodedFrame();
  const MiniSpec coded = CodedSpec(
      raw + JoinPlanes(raw), {{.stored = GoodFrame()}, {Codec::kByteSplitZstd, GoodFrame()}}, 2);
  MiniSpec spec = BaseSpec();
  spec.tensors.push_back(coded.tensors[0]);
  spec.hooks = coded.hooks;
  spec.has_fingerprints = true;
  return spec;
}

void AddCoded(Corpus& corpus) {
  AddGoodCoded(corpus);
  AddBadFrames(corpus);
  CorpusEntry& stored = corpus.Add("bad-R-CHK-01-stored_digest",
                                   CodedSpec(DecodedFrame(), {{.stored = GoodFrame()}}));
  stored.container.blob(0)[internal::format::kHeaderSize + 500] ^= std::byte{1};
  MiniSpec decoded = CodedSpec(DecodedFrame(), {{.stored = GoodFrame()}});
  const auto records = decoded.hooks.records;
  decoded.hooks.records = [records](int blob, std::vector<ChunkRecord>& all) {
    records(blob, all);
    all[0].raw_digest.bytes[0] ^= std::byte{1};
  };
  corpus.Add("bad-R-CHK-02-decoded_bytes", decoded);
}

}  // namespace sealpoint::testing
