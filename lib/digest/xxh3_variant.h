// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DIGEST_XXH3_VARIANT_H_
#define SEALPOINT_LIB_DIGEST_XXH3_VARIANT_H_

// Only for the sources of the variants: all of xxHash as static functions, compiled with the
// options of the variant.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/digest/xxh3.h"

#if XXH_VERSION_NUMBER < 800
#error "Sealpoint needs xxHash 0.8.0 or later, where XXH3 has its final values"
#endif

namespace sealpoint::internal::digest {
namespace {

void Xxh3Canonical(XXH128_hash_t hash, unsigned char* digest) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  for (std::size_t i = 0; i < sizeof(canonical.digest); ++i) digest[i] = canonical.digest[i];
}

void Xxh3Hash(const void* bytes, std::size_t size, unsigned char* digest) {
  Xxh3Canonical(XXH3_128bits(bytes, size), digest);
}

// These fail for a null pointer only.
void Xxh3Reset(void* state) {
  static_cast<void>(XXH3_128bits_reset(static_cast<XXH3_state_t*>(state)));
}

void Xxh3Update(void* state, const void* bytes, std::size_t size) {
  static_cast<void>(XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, size));
}

void Xxh3Finish(const void* state, unsigned char* digest) {
  Xxh3Canonical(XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state)), digest);
}

#if XXH_VECTOR == XXH_AVX512
constexpr const char* kInstructions = "AVX-512";
#elif XXH_VECTOR == XXH_AVX2
constexpr const char* kInstructions = "AVX2";
#elif XXH_VECTOR == XXH_SSE2
constexpr const char* kInstructions = "SSE2";
#elif XXH_VECTOR == XXH_NEON
constexpr const char* kInstructions = "NEON";
#else
constexpr const char* kInstructions = "scalar code";
#endif

constexpr Xxh3 kXxh3Here = {kInstructions, sizeof(XXH3_state_t), Xxh3Hash,
                            Xxh3Reset,     Xxh3Update,           Xxh3Finish};
static_assert(sizeof(XXH3_state_t) % kXxh3StateAlignment == 0);
static_assert(alignof(XXH3_state_t) <= kXxh3StateAlignment);

}  // namespace
}  // namespace sealpoint::internal::digest

#endif  // SEALPOINT_LIB_DIGEST_XXH3_VARIANT_H_
