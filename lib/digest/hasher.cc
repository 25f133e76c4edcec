// SPDX-License-Identifier: Apache-2.0
#include "lib/digest/hasher.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "lib/base/macros.h"
#include "lib/digest/xxh3.h"

namespace sealpoint {
namespace {

// Fits the second-level cache with room for its source; 16 to 256 KiB measured alike.
constexpr std::size_t kHashBlockBytes = 64 * kKiB;

// What the variants write is the value of a digest.
unsigned char* ValueOf(Digest& digest) {
  static_assert(sizeof(digest.bytes) == 16);
  return reinterpret_cast<unsigned char*>(digest.bytes.data());
}

}  // namespace

Digest ComputeDigest(ByteSpan bytes) {
  Digest digest;
  internal::digest::FastestXxh3().hash(bytes.data(), bytes.size(), ValueOf(digest));
  return digest;
}

namespace internal::digest {

struct Hasher::State {
  State() : memory(::operator new(xxh3.state_size, kAlignment)) { xxh3.reset(memory); }
  ~State() { ::operator delete(memory, kAlignment); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static constexpr std::align_val_t kAlignment{kXxh3StateAlignment};
  const Xxh3& xxh3 = FastestXxh3();
  void* memory;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::Update(ByteSpan bytes) {
  // An empty span may have no address, which older versions of xxHash take for an error.
  if (bytes.empty()) return;
  state_->xxh3.update(state_->memory, bytes.data(), bytes.size());
}

Digest Hasher::Finish() {
  Digest digest;
  state_->xxh3.finish(state_->memory, ValueOf(digest));
  state_->xxh3.reset(state_->memory);
  return digest;
}

void Hasher::CopyAndUpdate(ByteSpan from, MutableByteSpan to) {
  SEALPOINT_CHECK(from.size() == to.size());
  while (!from.empty()) {
    const std::size_t size = std::min(from.size(), kHashBlockBytes);
    std::memcpy(to.data(), from.data(), size);
    Update(to.first(size));
    from = from.subspan(size);
    to = to.subspan(size);
  }
}

}  // namespace internal::digest
}  // namespace sealpoint
