// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/credentials.h"

#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/s3/sigv4.h"

namespace sealpoint::internal::s3 {
namespace {

using std::chrono::system_clock;

// Credentials are renewed so long before they end; a request may take its whole deadline.
constexpr auto kRenewBefore = std::chrono::minutes(10);

std::string JsonText(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return *found->get_ptr<const std::string*>();
}

}  // namespace

std::optional<std::chrono::sys_seconds> ParseTime(std::string_view text) {
  std::tm parts{};
  const std::string copy(text);
  const char* end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&parts)));
}

std::string AnswerText(const HttpReply& reply) {
  if (reply.transport != Transport::kOk) return reply.transport_error;
  return StrCat("status ", reply.status);
}

HttpReply AskService(HttpClient& http, const HttpRequest& request) {
  constexpr std::array kWaits = {std::chrono::milliseconds(100), std::chrono::milliseconds(400)};
  for (std::size_t tries = 0;; ++tries) {
    HttpReply reply = http.Do(request);
    const bool is_busy = reply.status == 429 || reply.status >= 500 ||
                         reply.body.find("<Code>Throttling") != std::string::npos;
    if (!is_busy || tries == kWaits.size()) return reply;
    std::this_thread::sleep_for(kWaits[tries]);
  }
}

std::string WithoutNewline(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Result<S3Credentials> CredentialsFromJson(std::string_view text, const char* token_name) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  S3Credentials out;
  out.access_key_id = JsonText(json, "AccessKeyId");
  out.secret_access_key = JsonText(json, "SecretAccessKey");
  out.session_token = JsonText(json, token_name);
  out.expires_at = ParseTime(JsonText(json, "Expiration"));
  if (out.access_key_id.empty() || out.secret_access_key.empty()) {
    // The text itself may be a secret.
    return MakeError(Code::kIo, "the answer is ", text.size(),
                     " bytes, expected JSON with AccessKeyId and SecretAccessKey");
  }
  return out;
}

MaybeCredentials CredentialsOfEnvironment() {
  S3Credentials out{.access_key_id = Variable("AWS_ACCESS_KEY_ID"),
                    .secret_access_key = Variable("AWS_SECRET_ACCESS_KEY"),
                    .session_token = Variable("AWS_SESSION_TOKEN")};
  if (out.access_key_id.empty() && out.secret_access_key.empty()) return std::nullopt;
  if (out.access_key_id.empty() || out.secret_access_key.empty()) {
    return InvalidArgument(
        "one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set, expected "
        "both or none");
  }
  return out;
}

Result<S3Credentials> CredentialsOfProcess(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) {
    return MakeError(Code::kIo, "credential_process cannot be started (errno ", errno, ")");
  }
  std::string text;
  std::array<char, 4096> block{};
  while (text.size() <= 64 * kKiB) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), pipe);
    if (count == 0) break;
    text.append(block.data(), count);
  }
  const int status = pclose(pipe);
  if (status != 0) {  // the command may hold secrets
    return MakeError(Code::kIo, "credential_process ended with status ", WEXITSTATUS(status),
                     ", expected 0");
  }
  auto out = CredentialsFromJson(text, "SessionToken");
  if (!out.ok()) return std::move(out).error().Prefixed("credential_process");
  return out;
}

Result<S3Credentials> CredentialsOfSso(const Settings& settings, const Profile& profile) {
  const std::string session = profile.get("sso_session");
  const std::string start_url = profile.get("sso_start_url");
  // The name of a session is the key of the newer form, its URL that of the older.
  const std::string key = Sha1Hex(AsBytes(session.empty() ? start_url : session));
  const std::string path = HomePath(StrCat(".aws/sso/cache/", key, ".json"));
  const std::string advice = StrCat("; run: aws sso login --profile ", profile.name);
  auto cached = ReadSmallFile(path);
  if (!cached.ok()) return Status(Code::kIo, StrCat("no SSO token at ", path, advice));
  const nlohmann::json token = nlohmann::json::parse(*cached, nullptr, false);
  // The epoch, if it says no end.
  const auto until = ParseTime(JsonText(token, "expiresAt")).value_or(std::chrono::sys_seconds());
  if (JsonText(token, "accessToken").empty() || until <= system_clock::now()) {
    return Status(Code::kIo, StrCat("the SSO token at ", path, " has expired", advice));
  }
  const std::string given = Variable("AWS_ENDPOINT_URL_SSO");
  const std::string host =
      given.empty() ? StrCat("https://portal.sso.", profile.get("sso_region"), ".amazonaws.com")
                    : given;
  SEALPOINT_ASSIGN_OR_RETURN(const auto http, HttpClient::Create(settings.http));
  const HttpReply reply =
      AskService(*http, {.method = "GET",
                         .url = StrCat(host, "/federation/credentials?",
                                       QueryText({{"role_name", profile.get("sso_role_name")},
                                                  {"account_id", profile.get("sso_account_id")}})),
                         .headers = {{"x-amz-sso_bearer_token", JsonText(token, "accessToken")}}});
  const nlohmann::json answer = nlohmann::json::parse(reply.body, nullptr, false);
  const auto role = answer.is_object() ? answer.find("roleCredentials") : answer.end();
  if (!reply.is_good() || role == answer.end()) {
    return Status(Code::kIo, StrCat("SSO answered ", reply.status, " ", reply.transport_error,
                                    ", expected credentials", advice));
  }
  S3Credentials out{.access_key_id = JsonText(*role, "accessKeyId"),
                    .secret_access_key = JsonText(*role, "secretAccessKey"),
                    .session_token = JsonText(*role, "sessionToken")};
  if (const auto end = role->find("expiration"); end != role->end() && end->is_number_integer()) {
    const auto milliseconds = *end->get_ptr<const std::int64_t*>();
    out.expires_at = std::chrono::sys_seconds(std::chrono::seconds(milliseconds / 1000));
  }
  return out;
}

CredentialsProvider DefaultCredentials(const Settings& settings) {
  return [settings]() -> Result<S3Credentials> {
    // A profile that was named in the call comes before what the environment happens to have.
    if (settings.options.profile.empty()) {
      if (auto found = CredentialsOfEnvironment()) return *found;
    }
    if (auto found = CredentialsOfProfile(settings)) return *found;
    if (auto found =
            CredentialsOfWebIdentity(settings, Variable("AWS_WEB_IDENTITY_TOKEN_FILE"),
                                     Variable("AWS_ROLE_ARN"), Variable("AWS_ROLE_SESSION_NAME"))) {
      return *found;
    }
    if (auto found = CredentialsOfContainer(settings)) return *found;
    if (auto found = CredentialsOfInstance(settings)) return *found;
    return InvalidArgument(
        "no credentials of AWS were found, expected in AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, in profile \"",
        settings.profile.name,
        "\" of ~/.aws, or from a web identity, a container or an instance "
        "(docs/guides/object-stores.md)");
  };
}

Result<S3Credentials> CredentialsCache::Get(const S3Credentials* rejected) {
  const std::scoped_lock lock(mutex_);
  const auto now = system_clock::now();
  const bool is_good = kept_ && (!kept_->expires_at || *kept_->expires_at > now) &&
                       (rejected == nullptr || *kept_ != *rejected);
  const bool is_fresh = is_good && (!kept_->expires_at || *kept_->expires_at - kRenewBefore > now);
  if (is_fresh || (is_good && now < asked_at_ + ask_again_after_)) return *kept_;
  asked_at_ = now;
  auto next = provider_();
  if (next.ok()) {
    kept_ = *next;
    return next;
  }
  // A source that fails for a moment does no harm as long as the old ones are good.
  if (is_good) return *kept_;
  return std::move(next).error().Prefixed("credentials");
}

}  // namespace sealpoint::internal::s3
