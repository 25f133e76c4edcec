// SPDX-License-Identifier: Apache-2.0
#include "lib/digest/xxh3.h"

#include <array>

namespace sealpoint::internal::digest {
namespace {

struct Supported {
  Supported() {
#if defined(SEALPOINT_XXH3_X86)
    // True only if the operating system saves the registers, too.
    if (__builtin_cpu_supports("avx2")) variants[count++] = &kXxh3Avx2;
    if (__builtin_cpu_supports("avx512f")) variants[count++] = &kXxh3Avx512;
#endif
  }

  std::size_t count = 1;
  std::array<const Xxh3*, 4> variants = {&kXxh3Baseline};
};

const Supported& SupportedHere() {
  static const Supported supported;
  return supported;
}

}  // namespace

const Xxh3* const* SupportedXxh3() { return SupportedHere().variants.data(); }

const Xxh3& FastestXxh3() {
  const Supported& supported = SupportedHere();
  return *supported.variants[supported.count - 1];
}

}  // namespace sealpoint::internal::digest
