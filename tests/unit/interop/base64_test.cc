// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/base64.h"

#include <gtest/gtest.h>

#include <string>

namespace sealpoint::internal::interop {
namespace {

// The examples of RFC 4648.
TEST(Base64, EncodesAndDecodes) {
  const std::pair<const char*, const char*> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {"\xff\xef\xbe", "/+++"}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(EncodeBase64(AsBytes(bytes)), text);
    const auto decoded = DecodeBase64(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(AsText(*decoded), bytes);
  }
}

TEST(Base64, RefusesWhatTheEncoderDoesNotMake) {
  for (const char* const text : {"Z", "Zg", "Zg=", "Zg===", "Zm8", "Zh==", "Zm9=", "Zm9v=", "Zm 9v",
                                 "Zm9v\n", "Zm9v!", "=", "====", "Zg==Zg==", "Zm9v-_=="}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

}  // namespace
}  // namespace sealpoint::internal::interop
