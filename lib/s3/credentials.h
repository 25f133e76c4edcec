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

// The chain of docs/guides/object-stores.md. The first existing source is used, and its error is
// final, because another identity would not be the one that the caller configured.
CredentialsProvider DefaultCredentials(const Settings& settings);

// Sources of the chain; empty if a source is not configured.
using MaybeCredentials = std::optional<Result<S3Credentials>>;
MaybeCredentials CredentialsOfEnvironment();
// With the roles of role_arn that source_profile and credential_source lead to.
MaybeCredentials CredentialsOfProfile(const Settings& settings);
MaybeCredentials CredentialsOfWebIdentity(const Settings& settings, const std::string& token_file,
                                          const std::string& role, const std::string& session);
MaybeCredentials CredentialsOfContainer(const Settings& settings);
MaybeCredentials CredentialsOfInstance(const Settings& settings);
Result<S3Credentials> CredentialsOfSso(const Settings& settings, const Profile& profile);
// Credentials that STS issues for a profile's role, in exchange for the credentials of its source.
Result<S3Credentials> CredentialsOfRole(const Settings& settings, const Profile& profile,
                                        const S3Credentials& source);
Result<S3Credentials> CredentialsOfProcess(const std::string& command);

// Response of a service that issues credentials; requested up to three times while the service is
// busy (429, 5xx, throttling).
HttpReply AskService(HttpClient& http, const HttpRequest& request);
// "status 403", or why there is none.
std::string AnswerText(const HttpReply& reply);
std::string WithoutNewline(std::string text);
// {"AccessKeyId": …, "SecretAccessKey": …, <token_name>: …, "Expiration": …}. Errors: Io.
Result<S3Credentials> CredentialsFromJson(std::string_view text, const char* token_name);
// "2026-01-02T03:04:05Z", with fractions of a second or without.
std::optional<std::chrono::sys_seconds> ParseTime(std::string_view text);

// Caches the provider's credentials until shortly before they expire.
class CredentialsCache {
 public:
  // If a source returns the same credentials again, or fails while the cached ones are valid, it is
  // called again after `ask_again_after` at the earliest.
  explicit CredentialsCache(CredentialsProvider provider,
                            std::chrono::milliseconds ask_again_after = std::chrono::seconds(30))
      : provider_(std::move(provider)), ask_again_after_(ask_again_after) {}
  // May send requests. `rejected`: credentials that the server reported as expired; they are
  // refreshed if they are the cached ones.
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
