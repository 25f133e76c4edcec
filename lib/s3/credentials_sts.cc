// SPDX-License-Identifier: Apache-2.0
// Roles, whose credentials AWS's Security Token Service hands out.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/s3/credentials.h"
#include "lib/s3/sigv4.h"
#include "lib/s3/xml_reader.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr std::string_view kSessionName = "sealpoint";

struct StsPlace {
  std::string base_url{};  // "https://sts.us-east-1.amazonaws.com", without a path
  std::string path{};
  std::string region{};
};

// As AWS's own clients: an endpoint that was set up, else that of the region; the global one only
// if AWS_STS_REGIONAL_ENDPOINTS (sts_regional_endpoints) asks for it.
Result<StsPlace> FindSts(const Settings& settings) {
  const Profile& profile = settings.profile;
  const std::string& region = settings.options.region;
  const std::string given = FirstOf({Variable("AWS_ENDPOINT_URL_STS"), Variable("AWS_ENDPOINT_URL"),
                                     profile.get("endpoint_url")});
  if (!given.empty()) {
    const std::size_t host = given.find("://");
    const std::size_t slash = host == std::string::npos ? host : given.find('/', host + 3);
    return StsPlace{.base_url = given.substr(0, slash),
                    .path = slash == std::string::npos ? "/" : given.substr(slash),
                    .region = region};
  }
  const std::string mode = FirstOf(
      {Variable("AWS_STS_REGIONAL_ENDPOINTS"), profile.get("sts_regional_endpoints"), "regional"});
  if (mode != "regional" && mode != "legacy") {
    return InvalidArgument("AWS_STS_REGIONAL_ENDPOINTS or sts_regional_endpoints is ", mode,
                           ", expected regional or legacy");
  }
  if (mode == "legacy" && !region.starts_with("cn-")) {
    return StsPlace{.base_url = "https://sts.amazonaws.com", .path = "/", .region = "us-east-1"};
  }
  return StsPlace{.base_url = StrCat("https://sts.", region, ".amazonaws.com",
                                     region.starts_with("cn-") ? ".cn" : ""),
                  .path = "/",
                  .region = region};
}

HttpRequest RequestTo(const StsPlace& sts, const std::string& body, const S3Credentials* source) {
  SignedRequest request{.method = "POST",
                        .path = sts.path,
                        .headers = {{"content-type", "application/x-www-form-urlencoded"}},
                        .payload_hash = Sha256Hex(AsBytes(body))};
  if (source != nullptr) {
    request.headers["host"] = sts.base_url.substr(sts.base_url.find("://") + 3);
    const auto now = std::chrono::system_clock::now();
    Sign(*source,
         {.region = sts.region,
          .service = "sts",
          .now = std::chrono::time_point_cast<std::chrono::seconds>(now)},
         request);
  }
  return {.method = "POST",
          .url = sts.base_url + sts.path,
          .headers = std::move(request.headers),
          .body = AsBytes(body)};
}

// Signed if there are credentials to sign with.
Result<S3Credentials> AskSts(const Settings& settings, Query query, const S3Credentials* source) {
  const std::string action = query.front().second;
  query.emplace_back("Version", "2011-06-15");
  SEALPOINT_ASSIGN_OR_RETURN(const StsPlace sts, FindSts(settings));
  SEALPOINT_ASSIGN_OR_RETURN(const auto http, HttpClient::Create(settings.http));
  const std::string body = QueryText(query);
  const HttpReply reply = AskService(*http, RequestTo(sts, body, source));
  S3Credentials out;
  std::string refusal;
  const Status parsed = ReadXml(reply.body, [&](std::string_view path, const std::string& text) {
    if (path.ends_with("/Credentials/AccessKeyId")) out.access_key_id = text;
    if (path.ends_with("/Credentials/SecretAccessKey")) out.secret_access_key = text;
    if (path.ends_with("/Credentials/SessionToken")) out.session_token = text;
    if (path.ends_with("/Credentials/Expiration")) out.expires_at = ParseTime(text);
    if (path.ends_with("Error/Message")) refusal = text;
  });
  if (reply.is_good() && parsed.ok() && !out.access_key_id.empty()) return out;
  return MakeError(Code::kIo, action, " at ", sts.base_url, " answered ", AnswerText(reply),
                   ", expected credentials", refusal.empty() ? "" : ": ", refusal);
}

}  // namespace

MaybeCredentials CredentialsOfWebIdentity(const Settings& settings, const std::string& token_file,
                                          const std::string& role, const std::string& session) {
  if (token_file.empty()) return std::nullopt;
  if (role.empty()) {
    return InvalidArgument(
        "a web identity has a token file but no role, expected both "
        "(AWS_ROLE_ARN)");
  }
  auto token = ReadSmallFile(token_file);
  if (!token.ok()) return std::move(token).error().Prefixed("web identity");
  auto out = AskSts(settings,
                    {{"Action", "AssumeRoleWithWebIdentity"},
                     {"RoleArn", role},
                     {"RoleSessionName", FirstOf({session, std::string(kSessionName)})},
                     {"WebIdentityToken", WithoutNewline(*token)}},
                    nullptr);
  if (!out.ok()) return std::move(out).error().Prefixed(StrCat("web identity of role ", role));
  return out;
}

Result<S3Credentials> CredentialsOfRole(const Settings& settings, const Profile& profile,
                                        const S3Credentials& source) {
  constexpr int kSecondsMin = 900;
  constexpr int kSecondsMax = 12 * 60 * 60;
  const std::string role = profile.get("role_arn");
  Query query = {
      {"Action", "AssumeRole"},
      {"RoleArn", role},
      {"RoleSessionName", FirstOf({profile.get("role_session_name"), std::string(kSessionName)})}};
  if (const std::string seconds = profile.get("duration_seconds"); !seconds.empty()) {
    int value = 0;
    const char* const end = seconds.data() + seconds.size();
    const bool is_number = std::from_chars(seconds.data(), end, value).ptr == end;
    if (!is_number || value < kSecondsMin || value > kSecondsMax) {
      return InvalidArgument("profile \"", profile.name, "\" has duration_seconds = ", seconds,
                             ", expected ", kSecondsMin, " to ", kSecondsMax);
    }
    query.emplace_back("DurationSeconds", seconds);
  }
  if (const std::string id = profile.get("external_id"); !id.empty()) {
    query.emplace_back("ExternalId", id);
  }
  auto out = AskSts(settings, std::move(query), &source);
  if (out.ok()) return out;
  return std::move(out).error().Prefixed(
      StrCat("role ", role, " of profile \"", profile.name,
             "\", which must trust its source and which the source must be allowed to assume"));
}

}  // namespace sealpoint::internal::s3
