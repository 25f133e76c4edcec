// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_SETTINGS_H_
#define SEALPOINT_LIB_S3_SETTINGS_H_

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "lib/s3/http_client.h"
#include "sealpoint/s3.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::s3 {

// The variable's value, empty if it is not set.
std::string Variable(const char* name);
// The content of a file of at most 1 MiB. Errors: NotFound, Io.
Result<std::string> ReadSmallFile(const std::string& path);
std::string HomePath(std::string_view below);

using Section = std::map<std::string, std::string>;
// Entries of a profile in both files, with precedence for the credentials file, and the entries of
// its sso_session. Empty if the profile is in neither file.
struct Profile {
  std::string name{};
  bool is_named = false;  // by the caller or a variable, so that it must be there
  Section values{};
  std::string get(std::string_view key) const;
};
// `given`: name of the profile; empty: that of AWS_PROFILE, else "default". Errors: InvalidArgument
// (a named profile is in neither file), Io.
Result<Profile> ReadProfile(const std::string& given);
// The first that is not empty.
std::string FirstOf(std::initializer_list<std::string> values);
// "[profile a]" and "key = value" lines; exposed for tests. Indented lines belong to the value
// above.
std::map<std::string, Section> ReadIni(std::string_view text);

// S3Options with all values from the environment filled in, and values derived from them.
struct Settings {
  S3Options options{};
  Profile profile{};
  std::string bucket{};
  std::string base_url{};   // "https://host" of the requests, without a path
  std::string base_path{};  // "/bucket", or empty if the bucket is in the host name
  std::string host{};       // as the header has it
  bool is_tls = false;
  HttpOptions http{};
};
Result<Settings> MakeSettings(std::string_view bucket, S3Options options);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_SETTINGS_H_
