// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/chunk_codec.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/codec/frame_header.h"

namespace sealpoint::internal::codec {
namespace {

// The smallest window of zstd (RFC 8878, section 3.1.1.1.2).
constexpr std::uint64_t kWindowMinBytes = 1024;

struct CompressionContextDeleter {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct DecompressionContextDeleter {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

template <typename... Parts>
Status Corrupt(std::string_view rule, const Parts&... parts) {
  return RuleError(Code::kCorrupt, rule, parts...);
}

Status NoMemory() { return MakeError(Code::kIo, "out of memory in the codec"); }

bool UsesByteSplit(Codec codec, std::uint32_t element_size) {
  return codec == Codec::kByteSplitZstd && element_size > 1;
}

std::string DeclaredSize(const FrameHeader& header) {
  return header.content_size_bytes ? StrCat(*header.content_size_bytes, " bytes") : "no size";
}

// R-COD-04 and R-COD-05. `content_size` is that of the frame.
Status CheckHeader(const FrameHeader& header, std::uint64_t content_size) {
  if (header.has_dictionary_id) return Corrupt("R-COD-04", "zstd frame requires a dictionary");
  const std::uint64_t window_max =
      std::max(kWindowMinBytes, std::bit_ceil<std::uint64_t>(content_size));
  if (header.window_size_bytes > window_max) {
    return Corrupt("R-COD-05", "zstd frame requires a window of ", header.window_size_bytes,
                   " bytes, the limit for this chunk is ", window_max);
  }
  return {};
}

// Everything that can be checked without decoding. This comes before any allocation on purpose:
// what a hostile frame declares must not decide how much memory is taken.
Status CheckFrame(ByteSpan stored, std::size_t raw_size) {
  SEALPOINT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrameHeader(stored));
  if (header.content_size_bytes != raw_size) {
    return Corrupt("R-COD-03", "zstd frame declares ", DeclaredSize(header), ", expected the ",
                   raw_size, " bytes of the chunk");
  }
  SEALPOINT_RETURN_IF_ERROR(CheckHeader(header, raw_size));
  SEALPOINT_RETURN_IF_ERROR(CheckBlocks(stored, header));
  if (stored.size() >= raw_size) {
    return Corrupt("R-COD-08", "compressed chunk has ", stored.size(),
                   " stored bytes, expected fewer than its ", raw_size, " raw bytes");
  }
  return {};
}

// The same for the frame of a change list, whose size it returns.
Result<std::size_t> CheckListFrame(ByteSpan stored, std::size_t raw_size,
                                   std::uint32_t element_size) {
  SEALPOINT_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrameHeader(stored));
  const auto [least, greatest] = ChangeListSizes(raw_size, element_size);
  const std::uint64_t size = header.content_size_bytes.value_or(0);
  if (size < least || size > greatest) {
    return Corrupt("R-DLT-07", "zstd frame of a change list declares ", DeclaredSize(header),
                   ", expected ", least, " to ", greatest);
  }
  SEALPOINT_RETURN_IF_ERROR(CheckHeader(header, size));
  SEALPOINT_RETURN_IF_ERROR(CheckBlocks(stored, header));
  return static_cast<std::size_t>(size);
}

}  // namespace

// For the byte split. Weights and moments have few matches, whose search takes half the time; the
// entropy coder does the work. These parameters find cheap, long matches only: 1.7 times as fast on
// bf16 as level 1 of zstd, and smaller (docs/evidence/benchmarks.md). Public parameters: any zstd
// decodes it. The window is an upper bound: for a smaller chunk zstd takes a smaller one.
constexpr int kPresetLevel = 1;

void UsePreset(ZSTD_CCtx* context) {
  for (const std::size_t result : {ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_fast),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, 6),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, 7),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 17)}) {
    SEALPOINT_CHECK(!ZSTD_isError(result));
  }
}

struct ChunkCodec::Contexts {
  std::unique_ptr<ZSTD_CCtx, CompressionContextDeleter> compression;
  std::unique_ptr<ZSTD_DCtx, DecompressionContextDeleter> decompression;
  std::unique_ptr<std::byte[]> scratch;
  std::size_t scratch_size = 0;

  // Returns `size` bytes, kept for later chunks of at most this size; empty if out of memory.
  MutableByteSpan Scratch(std::size_t size) {
    if (size > scratch_size) {
      scratch.reset(new (std::nothrow) std::byte[size]);
      scratch_size = scratch ? size : 0;
    }
    return {scratch.get(), std::min(size, scratch_size)};
  }

  Status PrepareCompression(Codec codec, int level);
  Status Decompress(ByteSpan stored, MutableByteSpan out);
  // Appends `part` to the frame in `out` and ends a block; false if the frame does not fit.
  Result<bool> AppendBlocks(ByteSpan part, ZSTD_EndDirective end, ZSTD_outBuffer& out);
};

Status CompressionError(std::size_t result) {
  const bool lacks_memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
  return lacks_memory ? NoMemory()
                      : MakeError(Code::kInternal, "zstd compression: ", ZSTD_getErrorName(result));
}

Status ChunkCodec::Contexts::PrepareCompression(Codec codec, int level) {
  if (!compression) compression.reset(ZSTD_createCCtx());
  if (!compression) return NoMemory();
  SEALPOINT_RETURN_IF_ERROR(CheckLevel(level));
  // R-COD-05 bounds the window by the chunk. That needs no parameter: ZSTD_compress2 knows the size
  // of its input and reduces the window to the smallest power of two that holds it. A streaming
  // call that does not know the size would write frames that the decoder refuses.
  ZSTD_CCtx* const context = compression.get();
  for (const std::size_t result : {ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0),
                                   ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0)}) {
    SEALPOINT_CHECK(!ZSTD_isError(result));
  }
  if (codec == Codec::kByteSplitZstd && level == kPresetLevel) UsePreset(context);
  return {};
}

Status ChunkCodec::Contexts::Decompress(ByteSpan stored, MutableByteSpan out) {
  if (!decompression) decompression.reset(ZSTD_createDCtx());
  if (!decompression) return NoMemory();
  const std::size_t result = ZSTD_decompressDCtx(decompression.get(), out.data(), out.size(),
                                                 stored.data(), stored.size());
  if (result != out.size()) {  // an error is greater than any size
    return Corrupt("R-COD-07", "zstd frame does not decode to the ", out.size(),
                   " bytes of the chunk: ",
                   ZSTD_isError(result) ? std::string(ZSTD_getErrorName(result))
                                        : StrCat("it holds ", result, " bytes"));
  }
  return {};
}

Status ChunkCodec::CheckLevel(int level) {
  if (level >= ZSTD_minCLevel() && level <= ZSTD_maxCLevel()) return {};
  return InvalidArgument("codec_level is ", level, ", expected ", ZSTD_minCLevel(), " to ",
                         ZSTD_maxCLevel());
}

ChunkCodec::ChunkCodec() : contexts_(std::make_unique<Contexts>()) {}
ChunkCodec::~ChunkCodec() = default;
ChunkCodec::ChunkCodec(ChunkCodec&&) noexcept = default;
ChunkCodec& ChunkCodec::operator=(ChunkCodec&&) noexcept = default;

std::size_t ChunkCodec::EncodedSizeBound(std::size_t raw_size_bytes) {
  return ZSTD_compressBound(raw_size_bytes);
}

Result<std::size_t> ChunkCodec::Encode(Codec codec, int level, std::uint32_t element_size,
                                       ByteSpan raw, MutableByteSpan out) {
  SEALPOINT_CHECK(codec == Codec::kZstd || codec == Codec::kByteSplitZstd);
  SEALPOINT_CHECK(element_size >= 1 && out.size() >= EncodedSizeBound(raw.size()));
  SEALPOINT_RETURN_IF_ERROR(contexts_->PrepareCompression(codec, level));
  if (UsesByteSplit(codec, element_size) && !raw.empty()) {
    const MutableByteSpan split = contexts_->Scratch(raw.size());
    if (split.empty()) return NoMemory();
    SplitBytes(element_size, raw, split);
    raw = split;
  }
  const std::size_t result =
      ZSTD_compress2(contexts_->compression.get(), out.data(), out.size(), raw.data(), raw.size());
  if (ZSTD_isError(result)) return CompressionError(result);
  return result;
}

Result<bool> ChunkCodec::Contexts::AppendBlocks(ByteSpan part, ZSTD_EndDirective end,
                                                ZSTD_outBuffer& out) {
  ZSTD_inBuffer in{part.data(), part.size(), 0};
  const std::size_t result = ZSTD_compressStream2(compression.get(), &out, &in, end);
  if (ZSTD_isError(result)) return CompressionError(result);
  return result == 0;  // else something waits for room
}

Result<std::size_t> ChunkCodec::EncodeChanges(std::uint32_t element_size, ByteSpan raw,
                                              ByteSpan base, MutableByteSpan out,
                                              const VisitBlock& visit) {
  const MutableByteSpan scratch =
      contexts_->Scratch(ChangeListScratchSize(raw.size(), element_size));
  if (scratch.empty()) return NoMemory();
  const ChangeList list = MakeChangeList(element_size, raw, base, scratch, visit);
  if (list.bytes.empty()) return 0;
  SEALPOINT_RETURN_IF_ERROR(contexts_->PrepareCompression(Codec::kByteSplitZstd, kPresetLevel));
  const std::size_t pledged =
      ZSTD_CCtx_setPledgedSrcSize(contexts_->compression.get(), list.bytes.size());
  SEALPOINT_CHECK(!ZSTD_isError(pledged));
  ZSTD_outBuffer stored{out.data(), raw.size() - 1, 0};
  ByteSpan rest = list.bytes;
  for (std::size_t size = list.gaps_end; !rest.empty(); size = list.entry_count) {
    const ByteSpan part = rest.first(size);
    rest = rest.subspan(size);
    SEALPOINT_ASSIGN_OR_RETURN(
        const bool fits,
        contexts_->AppendBlocks(part, rest.empty() ? ZSTD_e_end : ZSTD_e_flush, stored));
    if (!fits) return raw.size();
  }
  return stored.pos;
}

Status ChunkCodec::ApplyChanges(std::uint32_t element_size, ByteSpan stored, MutableByteSpan bytes,
                                const VisitBlock& visit) {
  SEALPOINT_CHECK(element_size >= 1);
  if (stored.empty()) return ApplyChangeList(element_size, {}, bytes, visit);
  SEALPOINT_ASSIGN_OR_RETURN(const std::size_t size,
                             CheckListFrame(stored, bytes.size(), element_size));
  const MutableByteSpan list = contexts_->Scratch(size);
  if (list.empty()) return NoMemory();
  SEALPOINT_RETURN_IF_ERROR(contexts_->Decompress(stored, list));
  return ApplyChangeList(element_size, list, bytes, visit);
}

Status ChunkCodec::Decode(Codec codec, std::uint32_t element_size, ByteSpan stored,
                          MutableByteSpan raw) {
  SEALPOINT_CHECK(element_size >= 1);
  if (codec == Codec::kNone) {
    if (stored.size() != raw.size()) {
      return Corrupt("R-COD-07", "uncompressed chunk has ", stored.size(),
                     " stored bytes, expected ", raw.size());
    }
    std::copy(stored.begin(), stored.end(), raw.begin());
    return {};
  }
  if (codec != Codec::kZstd && codec != Codec::kByteSplitZstd) {
    return RuleError(Code::kUnsupported, "R-COD-01", "codec ", static_cast<std::uint16_t>(codec),
                     " is not known");
  }
  SEALPOINT_RETURN_IF_ERROR(CheckFrame(stored, raw.size()));
  if (!UsesByteSplit(codec, element_size)) return contexts_->Decompress(stored, raw);
  const MutableByteSpan split = contexts_->Scratch(raw.size());
  if (split.empty()) return NoMemory();
  SEALPOINT_RETURN_IF_ERROR(contexts_->Decompress(stored, split));
  JoinBytes(element_size, split, raw);
  return {};
}

}  // namespace sealpoint::internal::codec
