// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DIGEST_XXH3_H_
#define SEALPOINT_LIB_DIGEST_XXH3_H_

#include <cstddef>

namespace sealpoint::internal::digest {

// XXH3-128 with seed 0, compiled for one instruction set. A packaged libxxhash is compiled for the
// oldest processor of its architecture, where XXH3 runs at a quarter of the speed; only its shared
// form may have the faster variants. The header of xxHash is therefore compiled here, once per
// instruction set. These sources must not instantiate functions of the standard library's headers:
// the linker could use a copy with instructions that the processor lacks for the whole program.
struct Xxh3 {
  const char* instructions;  // a name: "NEON"
  std::size_t state_size;    // bytes, a multiple of 64; a state is aligned to 64
  void (*hash)(const void* bytes, std::size_t size, unsigned char* digest);
  void (*reset)(void* state);
  void (*update)(void* state, const void* bytes, std::size_t size);
  void (*finish)(const void* state, unsigned char* digest);
};

inline constexpr std::size_t kXxh3StateAlignment = 64;

extern const Xxh3 kXxh3Baseline;
#if defined(SEALPOINT_XXH3_X86)
extern const Xxh3 kXxh3Avx2;
extern const Xxh3 kXxh3Avx512;
#endif

// The variants that this processor can run, fastest last. Ends with a null pointer.
const Xxh3* const* SupportedXxh3();
// The fastest of them. Thread-safe.
const Xxh3& FastestXxh3();

}  // namespace sealpoint::internal::digest

#endif  // SEALPOINT_LIB_DIGEST_XXH3_H_
