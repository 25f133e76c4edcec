// SPDX-License-Identifier: Apache-2.0
//
// Chunks that are stored as bytes made by hand, and zstd frames (RFC 8878) for them, whose bytes
// do not depend on the zstd that is installed.
#ifndef SEALPOINT_TESTS_CONFORMANCE_STORED_CHUNKS_H_
#define SEALPOINT_TESTS_CONFORMANCE_STORED_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>

#include "tests/support/container/mini_container.h"

namespace sealpoint::testing {

// What the descriptor of a frame header announces.
constexpr std::uint8_t kContentSizeOf2Bytes = 1 << 6;
constexpr std::uint8_t kContentSizeOf4Bytes = 2 << 6;
constexpr std::uint8_t kSingleSegment = 1 << 5;
constexpr std::uint8_t kChecksum = 1 << 2;
constexpr std::uint8_t kDictionaryIdOf1Byte = 1;
// A content size of two bytes counts from this.
constexpr std::uint64_t kContentSizeOf2BytesMin = 256;

void AppendLe(Bytes& out, std::uint64_t value, int byte_count);
// Magic, then the descriptor and the fields that it announces.
Bytes FrameHeader(std::initializer_list<std::uint8_t> header);
// Plain bytes; not the last block, if nothing else is said.
void AppendPlainBlock(Bytes& out, const Bytes& bytes, bool is_last = false);
// `size` times one byte; the last block, if nothing else is said.
void AppendRunBlock(Bytes& out, std::uint64_t size, bool is_last = true,
                    std::byte value = std::byte{'x'});

struct StoredChunk {
  Codec codec = Codec::kZstd;
  Bytes stored;
};

// Has these chunks of a blob stored so, by the numbers of their records. All others stay plain.
void StoreChunks(MiniSpec& spec, int blob, const std::map<std::size_t, StoredChunk>& chunks);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_STORED_CHUNKS_H_
