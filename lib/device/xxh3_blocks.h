// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_XXH3_BLOCKS_H_
#define SEALPOINT_LIB_DEVICE_XXH3_BLOCKS_H_

#include <cstdint>
#include <cstring>

#include "lib/base/on_both.h"

// XXH3-128 with seed 0 and the default secret, as specified (doc/xxhash_spec.md of the xxHash
// project), in pieces that many threads can compute. Plain C++17, for the host and for nvcc; only
// for little-endian machines, like all that run CUDA.
//
// An input longer than 240 bytes is read in stripes of 64 bytes; 16 stripes make a block. Each of 8
// lanes has an accumulator of 64 bits. The value that a stripe adds to it does not depend on the
// accumulator, so the sum over a block can be computed without the preceding blocks. Only the
// scramble between two blocks is serial.
namespace sealpoint::internal::xxh3 {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Byte = unsigned char;

constexpr U64 kLanes = 8;
constexpr U64 kStripeBytes = 64;
constexpr U64 kStripesPerBlock = 16;
constexpr U64 kBlockBytes = kStripeBytes * kStripesPerBlock;
constexpr U64 kShortMaxBytes = 240;  // longest input without stripes

// The specification numbers them from 1.
constexpr U64 kPrime32A = 0x9E3779B1U;
constexpr U64 kPrime32B = 0x85EBCA77U;
constexpr U64 kPrime32C = 0xC2B2AE3DU;
constexpr U64 kPrime64A = 0x9E3779B185EBCA87U;
constexpr U64 kPrime64B = 0xC2B2AE3D27D4EB4FU;
constexpr U64 kPrime64C = 0x165667B19E3779F9U;
constexpr U64 kPrime64D = 0x85EBCA77C2B2AE63U;
constexpr U64 kPrime64E = 0x27D4EB2F165667C5U;
constexpr U64 kPrimeMix1 = 0x165667919E3779F9U;
constexpr U64 kPrimeMix2 = 0x9FB21C651E98DF25U;

// The default secret as little-endian words.
#define SEALPOINT_XXH3_SECRET                                                          \
  {0xbe4ba423396cfeb8U, 0x1cad21f72c81017cU, 0xdb979083e96dd4deU, 0x1f67b3b7a4a44072U, \
   0x78e5c0cc4ee679cbU, 0x2172ffcc7dd05a82U, 0x8e2443f7744608b8U, 0x4c263a81e69035e0U, \
   0xcb00c391bb52283cU, 0xa32e531b8b65d088U, 0x4ef90da297486471U, 0xd8acdea946ef1938U, \
   0x3f349ce33f76faa8U, 0x1d4f0bc7c7bbdcf9U, 0x3159b4cd4be0518aU, 0x647378d9c97e9fc8U, \
   0xc3ebd33483acc5eaU, 0xeb6313faffa081c5U, 0x49daf0b751dd0d17U, 0x9e68d429265516d3U, \
   0xfca1477d58be162bU, 0xce31d07ad1b8f88fU, 0x280416958f3acb45U, 0x7e404bbbcafbd7afU}
constexpr U64 kSecretBytes = 192;
constexpr U64 kSecretOnHost[kSecretBytes / 8] = SEALPOINT_XXH3_SECRET;
#if defined(__CUDACC__)
__device__ const U64 kSecretOnDevice[kSecretBytes / 8] = SEALPOINT_XXH3_SECRET;
#endif

// Word `index` of the secret.
SEALPOINT_ON_BOTH U64 SecretWord(U64 index) {
#if defined(__CUDA_ARCH__)
  return kSecretOnDevice[index];
#else
  return kSecretOnHost[index];
#endif
}
// The 64 bits of the secret from byte `offset` on.
SEALPOINT_ON_BOTH U64 Secret64(U64 offset) {
  const U64 shift = offset % 8 * 8;
  const U64 low = SecretWord(offset / 8);
  return shift == 0 ? low : low >> shift | SecretWord(offset / 8 + 1) << (64 - shift);
}
SEALPOINT_ON_BOTH U32 Secret32(U64 offset) { return static_cast<U32>(Secret64(offset)); }

// Reads from any address; a device faults on a word that is not aligned.
SEALPOINT_ON_BOTH U64 Load64(const Byte* from) {
#if defined(__CUDA_ARCH__)
  if (reinterpret_cast<std::uintptr_t>(from) % 8 == 0) return *reinterpret_cast<const U64*>(from);
  U64 value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | from[i];
  return value;
#else
  U64 value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
#endif
}
SEALPOINT_ON_BOTH U32 Load32(const Byte* from) {
  return static_cast<U32>(from[0]) | static_cast<U32>(from[1]) << 8 |
         static_cast<U32>(from[2]) << 16 | static_cast<U32>(from[3]) << 24;
}

SEALPOINT_ON_BOTH U32 Swap32(U32 x) {
  return x << 24 | (x << 8 & 0xFF0000U) | (x >> 8 & 0xFF00U) | x >> 24;
}
SEALPOINT_ON_BOTH U64 Swap64(U64 x) {
  return static_cast<U64>(Swap32(static_cast<U32>(x))) << 32 | Swap32(static_cast<U32>(x >> 32));
}
SEALPOINT_ON_BOTH U64 Multiply32(U64 a, U64 b) { return (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU); }

// Two halves of 128 bits.
struct Wide {
  U64 low;
  U64 high;
};

SEALPOINT_ON_BOTH Wide Multiply64(U64 a, U64 b) {
#if defined(__CUDA_ARCH__)
  return {a * b, __umul64hi(a, b)};
#else
  __extension__ using U128 = unsigned __int128;
  const U128 product = static_cast<U128>(a) * b;
  return {static_cast<U64>(product), static_cast<U64>(product >> 64)};
#endif
}
SEALPOINT_ON_BOTH U64 MultiplyAndFold(U64 a, U64 b) {
  const Wide product = Multiply64(a, b);
  return product.low ^ product.high;
}

SEALPOINT_ON_BOTH U64 Avalanche(U64 h) {
  h ^= h >> 37;
  h *= kPrimeMix1;
  return h ^ h >> 32;
}
SEALPOINT_ON_BOTH U64 AvalancheOld(U64 h) {  // that of XXH64
  h ^= h >> 33;
  h *= kPrime64B;
  h ^= h >> 29;
  h *= kPrime64C;
  return h ^ h >> 32;
}

// ---- Inputs of more than 240 bytes.

SEALPOINT_ON_BOTH U64 InitialAccumulator(U64 lane) {
  constexpr U64 kInitial[kLanes] = {kPrime32C, kPrime64A, kPrime64B, kPrime64C,
                                    kPrime64D, kPrime32B, kPrime64E, kPrime32A};
  return kInitial[lane];
}

// Value that a stripe adds to the accumulator of a lane, with this word of the secret.
SEALPOINT_ON_BOTH U64 StripeAddend(const Byte* stripe, U64 lane, U64 secret_word) {
  const U64 keyed = Load64(stripe + lane * 8) ^ secret_word;
  return Load64(stripe + (lane ^ 1) * 8) + Multiply32(keyed, keyed >> 32);
}

// Value that the first `stripe_count` stripes of a block add.
SEALPOINT_ON_BOTH U64 BlockAddend(const Byte* block, U64 lane, U64 stripe_count) {
  U64 sum = 0;
  for (U64 s = 0; s < stripe_count; ++s) {
    sum += StripeAddend(block + s * kStripeBytes, lane, SecretWord(s + lane));
  }
  return sum;
}

// Behind each whole block.
SEALPOINT_ON_BOTH U64 Scramble(U64 accumulator, U64 lane) {
  accumulator ^= accumulator >> 47;
  accumulator ^= SecretWord(kSecretBytes / 8 - kLanes + lane);
  return accumulator * kPrime32A;
}

// Blocks that a scramble follows: the last byte belongs to none of them.
SEALPOINT_ON_BOTH U64 ScrambledBlocks(U64 size) { return (size - 1) / kBlockBytes; }

// Value of the remainder: the whole stripes left, and the last 64 bytes again.
SEALPOINT_ON_BOTH U64 TailAddend(const Byte* input, U64 size, U64 lane) {
  const U64 begin = ScrambledBlocks(size) * kBlockBytes;
  const U64 stripes = (size - 1 - begin) / kStripeBytes;
  return BlockAddend(input + begin, lane, stripes) +
         StripeAddend(input + size - kStripeBytes, lane,
                      Secret64(kSecretBytes - kStripeBytes - 7 + lane * 8));
}

SEALPOINT_ON_BOTH U64 MergeLanes(const U64* lanes, U64 secret_offset, U64 start) {
  U64 sum = start;
  for (U64 i = 0; i < kLanes; i += 2) {
    sum += MultiplyAndFold(lanes[i] ^ Secret64(secret_offset + i * 8),
                           lanes[i + 1] ^ Secret64(secret_offset + i * 8 + 8));
  }
  return Avalanche(sum);
}

// The hash, of the accumulators after the tail.
SEALPOINT_ON_BOTH Wide FinishLong(const U64* lanes, U64 size) {
  return {MergeLanes(lanes, 11, size * kPrime64A),
          MergeLanes(lanes, kSecretBytes - kStripeBytes - 11, ~(size * kPrime64B))};
}

// ---- Inputs of at most 240 bytes.

SEALPOINT_ON_BOTH Wide HashUpTo3(const Byte* input, U64 size) {
  const U32 low = static_cast<U32>(input[0]) << 16 | static_cast<U32>(input[size / 2]) << 24 |
                  static_cast<U32>(input[size - 1]) | static_cast<U32>(size) << 8;
  const U32 swapped = Swap32(low);
  const U32 high = swapped << 13 | swapped >> 19;
  return {AvalancheOld(low ^ static_cast<U64>(Secret32(0) ^ Secret32(4))),
          AvalancheOld(high ^ static_cast<U64>(Secret32(8) ^ Secret32(12)))};
}

SEALPOINT_ON_BOTH Wide HashUpTo8(const Byte* input, U64 size) {
  const U64 both = Load32(input) | static_cast<U64>(Load32(input + size - 4)) << 32;
  const U64 keyed = both ^ Secret64(16) ^ Secret64(24);
  Wide h = Multiply64(keyed, kPrime64A + (size << 2));
  h.high += h.low << 1;
  h.low ^= h.high >> 3;
  h.low ^= h.low >> 35;
  h.low *= kPrimeMix2;
  h.low ^= h.low >> 28;
  h.high = Avalanche(h.high);
  return h;
}

SEALPOINT_ON_BOTH Wide HashUpTo16(const Byte* input, U64 size) {
  const U64 first = Load64(input);
  U64 last = Load64(input + size - 8);
  Wide m = Multiply64(first ^ last ^ Secret64(32) ^ Secret64(40), kPrime64A);
  m.low += (size - 1) << 54;
  last ^= Secret64(48) ^ Secret64(56);
  m.high += last + Multiply32(last, kPrime32B - 1);
  m.low ^= Swap64(m.high);
  Wide h = Multiply64(m.low, kPrime64B);
  h.high += m.high * kPrime64B;
  return {Avalanche(h.low), Avalanche(h.high)};
}

SEALPOINT_ON_BOTH U64 Mix16(const Byte* input, U64 secret_offset) {
  return MultiplyAndFold(Load64(input) ^ Secret64(secret_offset),
                         Load64(input + 8) ^ Secret64(secret_offset + 8));
}
SEALPOINT_ON_BOTH void Mix32(Wide& sum, const Byte* first, const Byte* second, U64 secret_offset) {
  sum.low += Mix16(first, secret_offset);
  sum.low ^= Load64(second) + Load64(second + 8);
  sum.high += Mix16(second, secret_offset + 16);
  sum.high ^= Load64(first) + Load64(first + 8);
}
SEALPOINT_ON_BOTH Wide FinishMiddle(Wide sum, U64 size) {
  const U64 high = sum.low * kPrime64A + sum.high * kPrime64D + size * kPrime64B;
  return {Avalanche(sum.low + sum.high), 0 - Avalanche(high)};
}

SEALPOINT_ON_BOTH Wide HashUpTo128(const Byte* input, U64 size) {
  Wide sum = {size * kPrime64A, 0};
  // From the middle outwards.
  for (U64 pair = (size - 1) / 32 + 1; pair-- > 0;) {
    Mix32(sum, input + pair * 16, input + size - 16 - pair * 16, pair * 32);
  }
  return FinishMiddle(sum, size);
}

SEALPOINT_ON_BOTH Wide HashUpTo240(const Byte* input, U64 size) {
  Wide sum = {size * kPrime64A, 0};
  for (U64 i = 0; i < 128; i += 32) Mix32(sum, input + i, input + i + 16, i);
  sum = {Avalanche(sum.low), Avalanche(sum.high)};
  for (U64 i = 128; i + 32 <= size; i += 32) Mix32(sum, input + i, input + i + 16, 3 + i - 128);
  Mix32(sum, input + size - 16, input + size - 32, 136 - 17 - 16);
  return FinishMiddle(sum, size);
}

SEALPOINT_ON_BOTH Wide HashShort(const Byte* input, U64 size) {
  if (size > 128) return HashUpTo240(input, size);
  if (size > 16) return HashUpTo128(input, size);
  if (size > 8) return HashUpTo16(input, size);
  if (size > 3) return HashUpTo8(input, size);
  if (size > 0) return HashUpTo3(input, size);
  return {AvalancheOld(Secret64(64) ^ Secret64(72)), AvalancheOld(Secret64(80) ^ Secret64(88))};
}

}  // namespace sealpoint::internal::xxh3

#endif  // SEALPOINT_LIB_DEVICE_XXH3_BLOCKS_H_
