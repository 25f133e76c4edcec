// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_SIGV4_H_
#define SEALPOINT_LIB_S3_SIGV4_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/s3.h"

// AWS Signature Version 4, in the form of S3: the path is encoded once and not normalised.

namespace sealpoint::internal::s3 {

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// RFC 3986: encodes all except unreserved characters as %XX; '/' is kept if requested.
std::string PercentEncode(std::string_view text, bool keep_slash);
// Decodes only pairs of hexadecimal digits.
std::string PercentDecode(std::string_view text);
std::string HexText(ByteSpan bytes);
std::string Sha256Hex(ByteSpan bytes);
std::string Sha1Hex(ByteSpan bytes);
// Empty where the machine forbids MD5.
std::string Md5Base64(ByteSpan bytes);

using Query = std::vector<std::pair<std::string, std::string>>;
// "a=1&b=", encoded and sorted as the signature wants it.
std::string QueryText(const Query& query);

struct SigningScope {
  std::string region{};
  std::string service = "s3";
  std::chrono::sys_seconds now{};
};

struct SignedRequest {
  std::string method{};
  std::string path{};                            // encoded
  std::string query{};                           // QueryText
  std::map<std::string, std::string> headers{};  // lower-case names; all of them are signed
  std::string payload_hash{};
};

// Adds x-amz-date, x-amz-content-sha256 (for S3) and x-amz-security-token (if there is one) to the
// headers, and the value of Authorization. Without an access key it adds only the date.
void Sign(const S3Credentials& credentials, const SigningScope& scope, SignedRequest& request);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_SIGV4_H_
