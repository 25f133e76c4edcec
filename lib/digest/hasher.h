// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DIGEST_HASHER_H_
#define SEALPOINT_LIB_DIGEST_HASHER_H_

#include <memory>

#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/id.h"

namespace sealpoint::internal::digest {

// Streaming XXH3-128. Reusable: Finish() resets. Holds one aligned state, allocates only when made.
// After a move only destruction and assignment are allowed. Thread safety: one caller at a time.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void Update(ByteSpan bytes);
  // The digest of all bytes since construction or the last Finish().
  Digest Finish();

  // Copies `from` to `to` and hashes the copied bytes in `to`, so that a bad copy is detected, in
  // blocks of 64 KiB while they are in the cache. Precondition: equal sizes, no overlap.
  void CopyAndUpdate(ByteSpan from, MutableByteSpan to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sealpoint::internal::digest

#endif  // SEALPOINT_LIB_DIGEST_HASHER_H_
