// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/later_copies.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <utility>

#include "lib/base/macros.h"
#include "lib/digest/hasher.h"
#include "lib/pipeline/thread_pool.h"

namespace sealpoint::internal {

void LaterCopies::Add(ByteSpan from, std::vector<MutableByteSpan> to, std::size_t record) {
  copies_.push_back({.from = from, .to = std::move(to), .record = record});
}

void LaterCopies::Run(Copy& copy) {
  for (const MutableByteSpan piece : copy.to) {
    CopyPastCaches(copy.from.first(piece.size()), piece);
    copy.from = copy.from.subspan(piece.size());
  }
}

void LaterCopies::Make(int threads) {
  const std::size_t begin = std::exchange(made_count_, copies_.size());
  const Status done =
      ParallelFor(threads, made_count_ - begin, [this, begin](int, std::size_t i) -> Status {
        Run(copies_[begin + i]);
        return {};
      });
  SEALPOINT_CHECK(done.ok());
}

void LaterCopies::Hash(BlobLayout& layout) {
  SEALPOINT_CHECK(!has_unmade());
  Hasher hasher;
  for (const Copy& copy : copies_) {
    for (const MutableByteSpan piece : copy.to) hasher.Update(piece);
    layout.SetDigest(copy.record, hasher.Finish());
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

}  // namespace sealpoint::internal
