// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/host_intake.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"

namespace sealpoint::internal::transfer {
namespace {

// Bounds chunks of borrowed memory: there may be no room for the digests of all, and the first
// write may fail.
constexpr std::uint64_t kChunksPerAppendMax = 4096;

// How much is copied at a time: small enough for the fingerprint to find it in the cache.
constexpr std::uint64_t kHashedSizeBytes = 128 * kKiB;

}  // namespace

Status CopyIntake::Begin(SourceReader& source, const ShardEncoding& encoding) {
  const std::uint64_t chunk_count = encoding.chunk_count();
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk) {
    const std::uint64_t size = encoding.raw_size_of(chunk);
    for (std::uint64_t done = 0; done < size;) {
      const ByteSpan piece = source.Next(std::min(size - done, kHashedSizeBytes));
      pipeline::FileStream::BlockVisitor add_fingerprint;
      if (encoding.part) {
        add_fingerprint = [&, begin = chunk * encoding.chunk_size + done](std::uint64_t at,
                                                                          ByteSpan block) {
          AddFingerprint(context_.chunks, encoding, begin + at, block);
        };
      }
      SEALPOINT_RETURN_IF_ERROR(context_.stream.Append(piece, hasher_, add_fingerprint));
      done += piece.size();
    }
    context_.chunks.AddChunk({.stored_size = size, .raw_digest = hasher_.Finish()});
  }
  return {};
}

Status BorrowIntake::Begin(SourceReader& source, const ShardEncoding& encoding) {
  const std::uint64_t chunk_count = encoding.chunk_count();
  for (std::uint64_t chunk = 0; chunk < chunk_count;) {
    const std::uint64_t end = std::min(chunk_count, chunk + kChunksPerAppendMax);
    Part& part = parts_.emplace_back();
    part.first_record = context_.chunks.AddChunk({.stored_size = encoding.raw_size_of(chunk)});
    for (std::uint64_t next = chunk + 1; next < end; ++next) {
      context_.chunks.AddChunk({.stored_size = encoding.raw_size_of(next)});
    }
    part.digests.resize(end - chunk);
    const ByteSpan bytes = source.Next(std::min(end * encoding.chunk_size, encoding.raw_size) -
                                       chunk * encoding.chunk_size);
    part.tensor = encoding.tensor;
    pipeline::FileStream::BlockVisitor add_fingerprint;
    if (encoding.part) {
      add_fingerprint = [&part, of = encoding.part, begin = chunk * encoding.chunk_size](
                            std::uint64_t at, ByteSpan block) {
        const Fingerprint of_block = of->Of(begin + at, block);
        const std::lock_guard lock(part.mutex);
        part.fingerprint += of_block;
      };
    }
    SEALPOINT_RETURN_IF_ERROR(
        context_.stream.AppendBorrowed(bytes, encoding.chunk_size, part.digests, add_fingerprint));
    chunk = end;
  }
  return {};
}

BorrowIntake::~BorrowIntake() { static_cast<void>(context_.stream.WaitForBorrowed()); }

Status BorrowIntake::Release() {
  if (parts_.empty()) return {};
  const Status status = context_.stream.WaitForBorrowed();
  for (const Part& part : parts_) {
    for (std::size_t i = 0; status.ok() && i < part.digests.size(); ++i) {
      context_.chunks.SetDigest(part.first_record + i, part.digests[i]);
    }
    if (status.ok() && part.fingerprint != Fingerprint()) {
      context_.chunks.AddFingerprint(part.tensor, part.fingerprint);
    }
  }
  parts_.clear();
  return status;
}

Status SnapshotIntake::Begin(SourceReader& source, const ShardEncoding& encoding) {
  const std::uint64_t chunk_count = encoding.chunk_count();
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk) {
    Copy copy{.from = source.Next(encoding.raw_size_of(chunk)),
              .encoding = encoding,
              .begin = chunk * encoding.chunk_size};
    copy.record = context_.chunks.AddChunk({.stored_size = copy.from.size()});
    for (std::uint64_t done = 0; done < copy.from.size(); done += copy.to.back().size()) {
      SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan window, context_.stream.Window());
      copy.to.push_back(
          window.first(std::min<std::uint64_t>(window.size(), copy.from.size() - done)));
      context_.stream.Advance(copy.to.back().size());
    }
    copies_.push_back(std::move(copy));
  }
  return {};
}

void SnapshotIntake::Run(Copy& copy) {
  for (const MutableByteSpan piece : copy.to) {
    CopyPastCaches(copy.from.first(piece.size()), piece);
    copy.from = copy.from.subspan(piece.size());
  }
}

// After an error the stream has given its buffers back: then nothing may be copied into them.
Status SnapshotIntake::Release() {
  if (made_count_ == copies_.size()) return {};
  SEALPOINT_RETURN_IF_ERROR(context_.stream.WaitForBorrowed());
  const std::size_t begin = std::exchange(made_count_, copies_.size());
  return pipeline::ParallelFor(context_.engine.options.snapshot_thread_count, made_count_ - begin,
                               [this, begin](int, std::size_t i) -> Status {
                                 Run(copies_[begin + i]);
                                 return {};
                               });
}

void SnapshotIntake::BeforeWrites() {
  SEALPOINT_CHECK(made_count_ == copies_.size());
  digest::Hasher hasher;
  for (const Copy& copy : copies_) {
    std::uint64_t at = copy.begin;
    for (const MutableByteSpan piece : copy.to) {
      for (std::size_t done = 0; done < piece.size();) {
        const ByteSpan part =
            piece.subspan(done, std::min<std::uint64_t>(piece.size() - done, kHashedSizeBytes));
        hasher.Update(part);
        AddFingerprint(context_.chunks, copy.encoding, at, part);
        at += part.size();
        done += part.size();
      }
    }
    context_.chunks.SetDigest(copy.record, hasher.Finish());
  }
  copies_.clear();
  made_count_ = 0;
}

void CopyPastCaches(ByteSpan from, MutableByteSpan to) {
  SEALPOINT_CHECK(from.size() == to.size());
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(to.data()) % kLine;
  if (to.size() < before + kLine) {
    if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
    return;
  }
  std::memcpy(to.data(), from.data(), before);
  std::size_t done = before;
  for (; done + kLine <= to.size(); done += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from.data() + done);
    auto* const target = reinterpret_cast<__m128i*>(to.data() + done);
    const __m128i parts[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                             _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, parts[i]);
  }
  _mm_sfence();  // such stores are seen by other threads in their order only behind it
  std::memcpy(to.data() + done, from.data() + done, to.size() - done);
#else
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
#endif
}

}  // namespace sealpoint::internal::transfer
