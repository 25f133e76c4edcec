// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/verify/verify_fixture.h"

#include <utility>

namespace sealpoint::testing {
namespace {

// Compressible bytes.
Bytes RampBytes(std::uint64_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i / 64);
  return bytes;
}

}  // namespace

MiniSpec SmallSpec() {
  MiniSpec spec;
  const Shape shape = {4, 6};
  const Bytes noise = NoiseBytes(1, 4 * 6 * 4);
  spec.tensors.push_back(
      CutTensor("grid", DType::kF32, shape, noise,
                {Region{{{0, 0}, {2, 6}}, {0, 5}}, Region{{{0, 0}, {2, 6}}, {5, 12}},
                 Region::Of({{2, 0}, {2, 6}})},
                {0, 1, 1}));
  const Bytes ramp = RampBytes(6000);
  spec.tensors.push_back(
      CutTensor("coded", DType::kBf16, {3000}, ramp, {Region::Whole({3000})}, {0}));
  spec.tensors.back().codec = Codec::kByteSplitZstd;
  spec.tensors.push_back(
      CutTensor("scalar", DType::kInt64, {}, NoiseBytes(2, 8), {Region::Whole({})}, {1}));
  spec.tensors.push_back({.name = "empty", .dtype = DType::kF16, .shape = {0, 3}});
  spec.objects.push_back({.name = "rng", .bytes = NoiseBytes(3, 100), .blob = 1});
  spec.objects.push_back({.name = "nothing", .bytes = {}, .blob = 1});
  return spec;
}

void VerifyFixture::Store(const MiniSpec& spec) {
  container_ = BuildMini(spec);
  StoreAgain();
}

void VerifyFixture::StoreAgain() {
  storage_ = MemoryStorage();
  StoreFiles(*storage_, "ckpt", container_.files);
}

VerifyReport VerifyFixture::Check(VerifyLevel level, int threads) {
  return Verify("ckpt", {.level = level, .threads = threads, .storage = storage_}).value();
}

}  // namespace sealpoint::testing
