// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "lib/transfer/host_intake.h"

namespace sealpoint::internal::transfer {
namespace {

// From and to any address.
TEST(CopyPastCachesTest, IsWholeAndTouchesNothingElse) {
  Bytes from(400);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 131 + i / 7);
  for (std::size_t size = 0; size <= 200; ++size) {
    for (std::size_t begin = 0; begin < 70; begin += 3) {
      Bytes expected(400, std::byte{7});
      std::copy_n(from.begin() + 5, size, expected.begin() + static_cast<std::ptrdiff_t>(begin));
      Bytes to(400, std::byte{7});
      CopyPastCaches(ByteSpan(from).subspan(5, size), MutableByteSpan(to).subspan(begin, size));
      ASSERT_EQ(to, expected) << size << " bytes to " << begin;
    }
  }
}

}  // namespace
}  // namespace sealpoint::internal::transfer
