// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "lib/base/errors.h"

namespace sealpoint::internal::s3 {
namespace {

Bytes Hash(const EVP_MD* algorithm, ByteSpan bytes) {
  Bytes out(EVP_MAX_MD_SIZE);
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size,
                 algorithm, nullptr) != 1) {
    size = 0;
  }
  out.resize(size);
  return out;
}

Bytes Hmac(ByteSpan key, std::string_view text) {
  Bytes out(EVP_MAX_MD_SIZE);
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  out.resize(size);
  return out;
}

bool IsUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string TimeText(std::chrono::sys_seconds time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return text.data();
}

}  // namespace

std::string PercentEncode(std::string_view text, bool keep_slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c) || (keep_slash && c == '/')) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = i + 2 < text.size() && text[i] == '%' ? HexValue(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : HexValue(text[i + 2]);
    if (low < 0) {
      out += text[i] == '+' ? ' ' : text[i];
    } else {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::string HexText(ByteSpan bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

std::string Sha256Hex(ByteSpan bytes) { return HexText(Hash(EVP_sha256(), bytes)); }
std::string Sha1Hex(ByteSpan bytes) { return HexText(Hash(EVP_sha1(), bytes)); }

std::string Md5Base64(ByteSpan bytes) {
  const Bytes digest = Hash(EVP_md5(), bytes);
  std::string out(4 * ((digest.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(digest.data()),
                                   static_cast<int>(digest.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::string QueryText(const Query& query) {
  Query encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(PercentEncode(name, false), PercentEncode(value, false));
  }
  std::ranges::sort(encoded);
  std::string out;
  for (const auto& [name, value] : encoded) {
    out += StrCat(out.empty() ? "" : "&", name, "=", value);
  }
  return out;
}

void Sign(const S3Credentials& credentials, const SigningScope& scope, SignedRequest& request) {
  const std::string time = TimeText(scope.now);
  const std::string day = time.substr(0, 8);
  request.headers["x-amz-date"] = time;
  if (scope.service == "s3") request.headers["x-amz-content-sha256"] = request.payload_hash;
  if (credentials.access_key_id.empty()) return;
  if (!credentials.session_token.empty()) {
    request.headers["x-amz-security-token"] = credentials.session_token;
  }
  std::string names;
  std::string lines;
  for (const auto& [name, value] : request.headers) {
    names += StrCat(names.empty() ? "" : ";", name);
    lines += StrCat(name, ":", value, "\n");
  }
  const std::string canonical = StrCat(request.method, "\n", request.path, "\n", request.query,
                                       "\n", lines, "\n", names, "\n", request.payload_hash);
  const std::string place = StrCat(day, "/", scope.region, "/", scope.service, "/aws4_request");
  const std::string to_sign =
      StrCat("AWS4-HMAC-SHA256\n", time, "\n", place, "\n", Sha256Hex(AsBytes(canonical)));
  Bytes key = Hmac(AsBytes(StrCat("AWS4", credentials.secret_access_key)), day);
  key = Hmac(key, scope.region);
  key = Hmac(key, scope.service);
  key = Hmac(key, "aws4_request");
  request.headers["authorization"] =
      StrCat("AWS4-HMAC-SHA256 Credential=", credentials.access_key_id, "/", place,
             ", SignedHeaders=", names, ", Signature=", HexText(Hmac(key, to_sign)));
}

}  // namespace sealpoint::internal::s3
