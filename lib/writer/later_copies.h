// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_LATER_COPIES_H_
#define SEALPOINT_LIB_WRITER_LATER_COPIES_H_

#include <cstddef>
#include <vector>

#include "lib/writer/blob_layout.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal {

// Chunks that are copied from host memory into buffers that stay where they are: noted one by one,
// then copied together on several threads, and hashed when there is time for it. So who waits for
// the copies does not wait for the digests. Thread safety: one caller at a time.
class LaterCopies {
 public:
  // Both are borrowed: `from` until Make, the buffers `to`, together as long, until Hash. The
  // digest is for the record of this number.
  void Add(ByteSpan from, std::vector<MutableByteSpan> to, std::size_t record);
  bool has_unmade() const { return made_count_ < copies_.size(); }
  // Makes the copies that were added since; `threads` is at least 1.
  void Make(int threads);
  // Gives `layout` the digests of all that was copied, and forgets them. Precondition: none is
  // unmade.
  void Hash(BlobLayout& layout);

 private:
  struct Copy {
    ByteSpan from{};  // empty once it is made
    std::vector<MutableByteSpan> to{};
    std::size_t record = 0;
  };
  static void Run(Copy& copy);

  std::vector<Copy> copies_;
  std::size_t made_count_ = 0;
};

// Copies past the caches, where the processor can: for memory that nobody looks at soon. Twice as
// fast as memcpy of a few MiB, and what is in the caches stays there. Precondition: equal sizes, no
// overlap.
void CopyPastCaches(ByteSpan from, MutableByteSpan to);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_LATER_COPIES_H_
