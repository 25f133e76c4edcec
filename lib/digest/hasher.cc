// SPDX-License-Identifier: Apache-2.0
#include "lib/digest/hasher.h"

#if defined(SEALPOINT_HAVE_XXH_DISPATCH)
#include <xxh_x86dispatch.h>  // replaces XXH3_128bits and XXH3_128bits_update by the fast ones
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "lib/base/macros.h"

namespace sealpoint {
namespace {

// Fits the second-level cache with room for its source; 16 to 256 KiB measured alike.
constexpr std::size_t kCopyPieceBytes = 64 * kKiB;

// The dispatcher picks its variant when first used on a long input, without synchronisation. Doing
// that under the guard of a static keeps two first users apart.
void ChooseVariantOnce() {
  static const bool chosen = [] {
    constexpr std::array<std::byte, 1024> kLongInput{};
    return XXH3_128bits(kLongInput.data(), kLongInput.size()).low64 != 0;
  }();
  static_cast<void>(chosen);
}

Digest ToDigest(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest.bytes));
  std::memcpy(digest.bytes.data(), canonical.digest, sizeof(canonical.digest));
  return digest;
}

}  // namespace

Digest ComputeDigest(ByteSpan bytes) {
  ChooseVariantOnce();
  return ToDigest(XXH3_128bits(bytes.data(), bytes.size()));
}

namespace internal {

// The library makes the state, since it must be aligned and its size belongs to the library.
struct Hasher::State {
  State() : xxh(XXH3_createState()) {
    SEALPOINT_CHECK(xxh != nullptr);
    Reset();
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void Reset() const { SEALPOINT_CHECK(XXH3_128bits_reset(xxh) == XXH_OK); }

  XXH3_state_t* xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { ChooseVariantOnce(); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::Update(ByteSpan bytes) {
  // An empty span may have no address, which older libraries take for an error.
  if (bytes.empty()) return;
  SEALPOINT_CHECK(XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

Digest Hasher::Finish() {
  const Digest digest = ToDigest(XXH3_128bits_digest(state_->xxh));
  state_->Reset();
  return digest;
}

void Hasher::CopyAndUpdate(ByteSpan from, MutableByteSpan to) {
  SEALPOINT_CHECK(from.size() == to.size());
  while (!from.empty()) {
    const std::size_t piece = std::min(from.size(), kCopyPieceBytes);
    std::memcpy(to.data(), from.data(), piece);
    Update(to.first(piece));
    from = from.subspan(piece);
    to = to.subspan(piece);
  }
}

}  // namespace internal
}  // namespace sealpoint
