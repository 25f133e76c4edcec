// SPDX-License-Identifier: Apache-2.0
// What a profile of ~/.aws says, and the profiles that it names.
#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/s3/credentials.h"

namespace sealpoint::internal::s3 {
namespace {

bool HasKeys(const Profile& profile) { return !profile.get("aws_access_key_id").empty(); }

bool IsRole(const Profile& profile) {
  return !profile.get("role_arn").empty() && profile.get("web_identity_token_file").empty();
}

// What a profile has without the help of another one.
MaybeCredentials OwnCredentials(const Settings& settings, const Profile& profile) {
  if (HasKeys(profile)) {
    return S3Credentials{.access_key_id = profile.get("aws_access_key_id"),
                         .secret_access_key = profile.get("aws_secret_access_key"),
                         .session_token = profile.get("aws_session_token")};
  }
  if (!profile.get("web_identity_token_file").empty()) {
    return CredentialsOfWebIdentity(settings, profile.get("web_identity_token_file"),
                                    profile.get("role_arn"), profile.get("role_session_name"));
  }
  if (!profile.get("sso_start_url").empty()) return CredentialsOfSso(settings, profile);
  if (!profile.get("credential_process").empty()) {
    return CredentialsOfProcess(profile.get("credential_process"));
  }
  return std::nullopt;
}

Result<S3Credentials> CredentialsOfSource(const Settings& settings, const Profile& role) {
  const std::string source = role.get("credential_source");
  MaybeCredentials found;
  if (source == "Environment") {
    found = CredentialsOfEnvironment();
  } else if (source == "EcsContainer") {
    found = CredentialsOfContainer(settings);
  } else if (source == "Ec2InstanceMetadata") {
    found = CredentialsOfInstance(settings);
  } else {
    return InvalidArgument("profile \"", role.name, "\" has credential_source = ", source,
                           ", expected Environment, EcsContainer or Ec2InstanceMetadata");
  }
  if (found) return *std::move(found);
  return InvalidArgument("profile \"", role.name, "\" has credential_source = ", source,
                         ", and there are no credentials");
}

Status CheckRole(const Profile& role, std::span<const Profile> before) {
  const std::string source = role.get("source_profile");
  if (!role.get("mfa_serial").empty()) {
    return InvalidArgument(
        "profile \"", role.name,
        "\" has mfa_serial, but no code can be entered here; expected a role without it, "
        "or "
        "a profile with credential_process = aws configure export-credentials --profile ",
        role.name);
  }
  if (source.empty() == role.get("credential_source").empty()) {
    return InvalidArgument("profile \"", role.name,
                           "\" has role_arn, expected one of source_profile, credential_source and "
                           "web_identity_token_file with it");
  }
  const bool is_loop =
      (source == role.name && !HasKeys(role)) ||
      std::ranges::any_of(before, [&](const Profile& each) { return each.name == source; });
  if (!is_loop) return {};
  return InvalidArgument("profile \"", role.name, "\" has source_profile = ", source,
                         ", which is a cycle; expected a profile with credentials at the end");
}

}  // namespace

// From role to source until one has credentials of its own, and back.
MaybeCredentials CredentialsOfProfile(const Settings& settings) {
  std::vector<Profile> roles;
  Profile profile = settings.profile;
  while (IsRole(profile) && (roles.empty() || !HasKeys(profile))) {
    if (Status status = CheckRole(profile, roles); !status.ok()) return status;
    roles.push_back(profile);
    const std::string source = profile.get("source_profile");
    if (source == profile.name || source.empty()) break;  // its own keys, or credential_source
    auto next = ReadProfile(source);
    if (!next.ok()) return next.error();
    profile = *std::move(next);
  }
  const bool has_source = !roles.empty() && !roles.back().get("credential_source").empty();
  MaybeCredentials found =
      has_source ? CredentialsOfSource(settings, roles.back()) : OwnCredentials(settings, profile);
  if (!found && !roles.empty()) {
    return InvalidArgument("profile \"", profile.name, "\" is source_profile of \"",
                           roles.back().name, "\" and has no credentials");
  }
  for (const Profile& role : roles | std::views::reverse) {
    if (!found->ok()) break;
    found = CredentialsOfRole(settings, role, **found);
  }
  return found;
}

}  // namespace sealpoint::internal::s3
