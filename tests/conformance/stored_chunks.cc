// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/stored_chunks.h"

#include <algorithm>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/format/constants.h"

namespace sealpoint::testing {
namespace {

using internal::format::ChunkRecord;

// The plain chunks of a shard, in order.
std::vector<Bytes> CutChunks(const Bytes& raw, std::uint64_t chunk_size) {
  std::vector<Bytes> chunks;
  for (std::uint64_t at = 0; at < raw.size(); at += chunk_size) {
    const std::uint64_t end = std::min<std::uint64_t>(raw.size(), at + chunk_size);
    chunks.emplace_back(raw.begin() + static_cast<std::ptrdiff_t>(at),
                        raw.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return chunks;
}

// The chunk area of a blob, and where each chunk lies in it.
struct LaidOut {
  Bytes area = Bytes(internal::format::kHeaderSize);
  std::vector<std::uint64_t> offsets;
  std::map<std::size_t, StoredChunk> chunks;

  void Add(const Bytes& raw, std::uint64_t chunk_size) {
    area.resize(internal::AlignUp(area.size(), internal::format::ShardAlignment(raw.size())));
    for (Bytes& chunk : CutChunks(raw, chunk_size)) {
      const auto made = chunks.find(offsets.size());
      const Bytes& stored = made == chunks.end() ? chunk : made->second.stored;
      offsets.push_back(area.size());
      area.insert(area.end(), stored.begin(), stored.end());
    }
  }
};

}  // namespace

void AppendLe(Bytes& out, std::uint64_t value, int byte_count) {
  for (int i = 0; i < byte_count; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

Bytes FrameHeader(std::initializer_list<std::uint8_t> header) {
  Bytes out;
  AppendLe(out, 0xfd2fb528, 4);
  for (const std::uint8_t b : header) out.push_back(std::byte{b});
  return out;
}

void AppendPlainBlock(Bytes& out, const Bytes& bytes, bool is_last) {
  AppendLe(out, bytes.size() << 3 | (is_last ? 1 : 0), 3);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void AppendRunBlock(Bytes& out, std::uint64_t size, bool is_last, std::byte value) {
  AppendLe(out, size << 3 | 1 << 1 | (is_last ? 1 : 0), 3);
  out.push_back(value);
}

void StoreChunks(MiniSpec& spec, int blob, const std::map<std::size_t, StoredChunk>& chunks) {
  LaidOut laid_out;
  laid_out.chunks = chunks;
  for (const MiniTensor& tensor : spec.tensors) {
    for (const MiniShard& shard : tensor.shards) {
      if (shard.blob == blob) laid_out.Add(shard.bytes, tensor.chunk_size);
    }
  }
  for (const MiniObject& object : spec.objects) {
    if (object.blob == blob) laid_out.Add(object.bytes, object.chunk_size);
  }
  spec.hooks.chunk_area = [laid_out, blob](int number, Bytes& area) {
    if (number != blob) return;
    area.resize(internal::format::kHeaderSize);
    area.insert(area.end(), laid_out.area.begin() + internal::format::kHeaderSize,
                laid_out.area.end());
  };
  spec.hooks.records = [laid_out, blob](int number, std::vector<ChunkRecord>& records) {
    if (number != blob) return;
    for (std::size_t i = 0; i < records.size(); ++i) records[i].offset = laid_out.offsets[i];
    for (const auto& [i, chunk] : laid_out.chunks) {
      records[i].stored_size = static_cast<std::uint32_t>(chunk.stored.size());
      records[i].codec = chunk.codec;
      if (chunk.codec != Codec::kNone) records[i].stored_digest = ComputeDigest(chunk.stored);
    }
  };
}

}  // namespace sealpoint::testing
