// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/sigv4.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sealpoint::internal::s3 {
namespace {

constexpr std::chrono::sys_seconds kAug2015{std::chrono::seconds(1440938160)};  // 20150830T123600Z
constexpr std::chrono::sys_seconds kMay2013{std::chrono::seconds(1369353600)};  // 20130524T000000Z

std::string SignatureOf(const S3Credentials& credentials, const SigningScope& scope,
                        SignedRequest request) {
  Sign(credentials, scope, request);
  const std::string& text = request.headers["authorization"];
  return text.substr(text.find("Signature=") + 10);
}

struct SigningCase {
  const char* name;
  SignedRequest request;
  std::string signature;
};

// The suite that AWS publishes for the signature (aws-sig-v4-test-suite).
TEST(SigV4, SuiteOfAws) {
  const S3Credentials keys{.access_key_id = "AKIDEXAMPLE",
                           .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
  const std::string empty = Sha256Hex({});
  const std::map<std::string, std::string> host = {{"host", "example.amazonaws.com"}};
  const SigningCase cases[] = {
      {"get-vanilla",
       {"GET", "/", "", host, empty},
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"post-vanilla",
       {"POST", "/", "", host, empty},
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"get-vanilla-query-order-key-case",
       {"GET", "/", QueryText({{"Param2", "value2"}, {"Param1", "value1"}}), host, empty},
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-utf8",
       {"GET", PercentEncode("/\u1234", true), "", host, empty},
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
  };
  for (const SigningCase& each : cases) {
    EXPECT_EQ(SignatureOf(keys, {.region = "us-east-1", .service = "service", .now = kAug2015},
                          each.request),
              each.signature)
        << each.name;
  }
}

// The examples of "Signature Calculations for the Authorization Header" of S3.
TEST(SigV4, ExamplesOfS3) {
  const S3Credentials keys{.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                           .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const std::string empty = Sha256Hex({});
  const std::string host = "examplebucket.s3.amazonaws.com";
  const SigningCase cases[] = {
      {"GetObject",
       {"GET", "/test.txt", "", {{"host", host}, {"range", "bytes=0-9"}}, empty},
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"PutObject",
       {"PUT",
        PercentEncode("/test$file.text", true),
        "",
        {{"host", host},
         {"date", "Fri, 24 May 2013 00:00:00 GMT"},
         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
        Sha256Hex(AsBytes("Welcome to Amazon S3."))},
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"GetBucketLifecycle",
       {"GET", "/", QueryText({{"lifecycle", ""}}), {{"host", host}}, empty},
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"ListObjects",
       {"GET", "/", QueryText({{"prefix", "J"}, {"max-keys", "2"}}), {{"host", host}}, empty},
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const SigningCase& each : cases) {
    EXPECT_EQ(SignatureOf(keys, {.region = "us-east-1", .now = kMay2013}, each.request),
              each.signature)
        << each.name;
  }
}

TEST(SigV4, SignsTheTokenAndNothingWithoutAKey) {
  SignedRequest request{.method = "GET", .path = "/", .payload_hash = Sha256Hex({})};
  Sign({.access_key_id = "a", .secret_access_key = "b", .session_token = "t"}, {}, request);
  EXPECT_EQ(request.headers["x-amz-security-token"], "t");
  EXPECT_NE(request.headers["authorization"].find("x-amz-date;x-amz-security-token,"),
            std::string::npos);
  SignedRequest open{.method = "GET", .path = "/", .payload_hash = Sha256Hex({})};
  Sign({}, {}, open);
  EXPECT_FALSE(open.headers.contains("authorization"));
}

TEST(SigV4, TextForms) {
  EXPECT_EQ(PercentEncode("a b/\xc3\xa9~", true), "a%20b/%C3%A9~");
  EXPECT_EQ(PercentEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(PercentDecode("a%20b%2Fc%C3%a9"), "a b/c\xc3\xa9");
  EXPECT_EQ(PercentDecode("%2F"), "/");
  EXPECT_EQ(PercentDecode("1%"), "1%");
  EXPECT_EQ(PercentDecode("%zz"), "%zz");
  EXPECT_EQ(Md5Base64(AsBytes("abc")), "kAFQmDzST7DWlj99KOF/cg==");
}

}  // namespace
}  // namespace sealpoint::internal::s3
