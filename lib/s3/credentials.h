// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_CREDENTIALS_H_
#define SEALPOINT_LIB_S3_CREDENTIALS_H_

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lib/s3/settings.h"
#include "sealpoint/s3.h"

namespace sealpoint::internal::s3 {

// The chain of docs/guides/object-stores.md: the first source that is there answers, and its error
// is the error, since another identity is not what the caller set up.
CredentialsProvider DefaultCredentials(const Settings& settings);

// Its sources; nothing if this one is not set up.
using MaybeCredentials = std::optional<Result<S3Credentials>>;
MaybeCredentials CredentialsOfEnvironment();
// With the roles of role_arn that source_profile and credential_source lead to.
MaybeCredentials CredentialsOfProfile(const Settings& settings);
MaybeCredentials CredentialsOfWebIdentity(const Settings& settings, const std::string& token_file,
                                          const std::string& role, const std::string& session);
MaybeCredentials CredentialsOfContainer(const Settings& settings);
MaybeCredentials CredentialsOfInstance(const Settings& settings);
Result<S3Credentials> CredentialsOfSso(const Settings& settings, const Profile& profile);
// What the role of a profile is given by STS in exchange for the credentials of its source.
Result<S3Credentials> CredentialsOfRole(const Settings& settings, const Profile& profile,
                                        const S3Credentials& source);
Result<S3Credentials> CredentialsOfProcess(const std::string& command);

// The answer of a service that gives credentials, which is asked up to three times while it is busy
// (429, 5xx, throttling).
HttpReply AskService(HttpClient& http, const HttpRequest& request);
// "status 403", or why there is none.
std::string AnswerText(const HttpReply& reply);
std::string WithoutNewline(std::string text);
// {"AccessKeyId": …, "SecretAccessKey": …, <token_name>: …, "Expiration": …}. Errors: Io.
Result<S3Credentials> CredentialsFromJson(std::string_view text, const char* token_name);
// "2026-01-02T03:04:05Z", with fractions of a second or without.
std::optional<std::chrono::sys_seconds> ParseTime(std::string_view text);

// Keeps what the provider gave until shortly before its end.
class CredentialsCache {
 public:
  // While what is kept is good a source that gives the same once more, or fails, is asked again no
  // sooner than `ask_again_after`.
  explicit CredentialsCache(CredentialsProvider provider,
                            std::chrono::milliseconds ask_again_after = std::chrono::seconds(30))
      : provider_(std::move(provider)), ask_again_after_(ask_again_after) {}
  // May do requests. `rejected` are those that the server called expired: asked for again if they
  // are what is kept.
  Result<S3Credentials> Get(const S3Credentials* rejected = nullptr);

 private:
  CredentialsProvider provider_;
  const std::chrono::milliseconds ask_again_after_;
  std::mutex mutex_;
  std::optional<S3Credentials> kept_;
  std::chrono::system_clock::time_point asked_at_{};
};

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_CREDENTIALS_H_
