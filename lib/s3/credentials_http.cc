// SPDX-License-Identifier: Apache-2.0
// Credentials that a service beside the machine hands out.
#include <utility>

#include "lib/base/errors.h"
#include "lib/s3/credentials.h"
#include "lib/s3/sigv4.h"

namespace sealpoint::internal::s3 {
namespace {

// Where nothing answers at the address, this is no machine of AWS; so not long, and at no proxy.
HttpOptions LocalHttp() {
  return {.without_proxy = true,
          .requests_max = 1,
          .deadline = std::chrono::seconds(5),
          .connect_deadline = std::chrono::seconds(1)};
}

bool IsLocalUrl(std::string_view url) {
  for (const std::string_view start :
       {"https://", "http://169.254.170.2", "http://169.254.170.23", "http://[fd00:ec2::23]",
        "http://127.0.0.1", "http://localhost", "http://[::1]"}) {
    if (!url.starts_with(start)) continue;
    if (start.ends_with('/') || url.size() == start.size()) return true;
    const char next = url[start.size()];
    if (next == '/' || next == ':' || next == '?') return true;
  }
  return false;
}

}  // namespace

MaybeCredentials CredentialsOfContainer(const Settings& /*settings*/) {
  const std::string relative = Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return std::nullopt;
  const std::string url = relative.empty() ? full : StrCat("http://169.254.170.2", relative);
  if (!IsLocalUrl(url)) {
    return InvalidArgument("AWS_CONTAINER_CREDENTIALS_FULL_URI is ", url,
                           ", expected https, or http at an address of this machine");
  }
  std::string token = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  // The file is rotated, so it is read at each renewal, and comes first.
  const std::string token_file = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!token_file.empty()) {
    auto text = ReadSmallFile(token_file);
    if (!text.ok()) return std::move(text).error().Prefixed("container credentials");
    token = WithoutNewline(*text);
  }
  auto http = HttpClient::Create(LocalHttp());
  if (!http.ok()) return http.error();
  HttpRequest request{.method = "GET", .url = url};
  if (!token.empty()) request.headers["authorization"] = token;
  const HttpReply reply = AskService(**http, request);
  if (!reply.is_good()) {
    return MakeError(Code::kIo, "container credentials: ", url, " answered ", AnswerText(reply),
                     ", expected 200");
  }
  return CredentialsFromJson(reply.body, "Token");
}

MaybeCredentials CredentialsOfInstance(const Settings& /*settings*/) {
  const std::string off = Variable("AWS_EC2_METADATA_DISABLED");
  if (off == "true" || off == "TRUE" || off == "True") return std::nullopt;
  const std::string given = Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  std::string base = given.empty() ? "http://169.254.169.254" : given;
  while (base.ends_with('/')) base.pop_back();
  auto http = HttpClient::Create(LocalHttp());
  if (!http.ok()) return http.error();
  const HttpReply token =
      AskService(**http, {.method = "PUT",
                          .url = base + "/latest/api/token",
                          .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}}});
  if (token.transport != Transport::kOk) return std::nullopt;  // not a machine of EC2
  const std::string roles = base + "/latest/meta-data/iam/security-credentials/";
  const auto get = [&](const std::string& url) {
    return AskService(
        **http,
        {.method = "GET", .url = url, .headers = {{"x-aws-ec2-metadata-token", token.body}}});
  };
  const HttpReply role = token.is_good() ? get(roles) : token;
  if (role.status == 404) return std::nullopt;  // an instance without a role
  if (!role.is_good()) {
    return MakeError(
        Code::kIo,
        "none in the environment, in profile files or of a container; "
        "instance metadata: ",
        base, " answered ", AnswerText(role),
        ", expected 200; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
  }
  const std::string name = role.body.substr(0, role.body.find('\n'));
  const HttpReply reply = get(roles + PercentEncode(name, false));
  if (!reply.is_good()) {
    return MakeError(Code::kIo, "instance metadata: role ", name, " answered ", AnswerText(reply),
                     ", expected 200");
  }
  return CredentialsFromJson(reply.body, "Token");
}

}  // namespace sealpoint::internal::s3
