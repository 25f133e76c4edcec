// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/settings.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr std::size_t kFileSizeMax = 1 * kMiB;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

Result<std::map<std::string, Section>> ReadIniFile(const char* variable, std::string_view name) {
  const std::string given = Variable(variable);
  auto text = ReadSmallFile(given.empty() ? HomePath(name) : given);
  if (text.ok()) return ReadIni(*text);
  // A file that was named is there, unless keys make it needless: another identity is not what was
  // set up. What is in the home directory of another user is not there.
  const bool may_lack = given.empty() || !Variable("AWS_ACCESS_KEY_ID").empty();
  const bool is_lacking = text.error().code() == Code::kNotFound;
  if (is_lacking && may_lack) return std::map<std::string, Section>{};
  const Status& error = text.error();
  return std::move(
             MakeError(Code::kIo, given.empty() ? "profiles" : variable, ": ", error.message()))
      .AtPath(error.place().path);
}

bool IsGoodBucket(std::string_view name) {
  if (name.size() < 3 || name.size() > 63) return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           (c >= 'A' && c <= 'Z');
  });
}

Status CheckOptions(const S3Options& options) {
  constexpr std::uint64_t kPartMin = 5 * kMiB;
  constexpr std::uint64_t kPartMax = 5 * kGiB;
  if (options.part_size_bytes < kPartMin || options.part_size_bytes > kPartMax) {
    return InvalidArgument("S3Options::part_size_bytes is ", options.part_size_bytes, ", expected ",
                           kPartMin, " to ", kPartMax);
  }
  if (options.get_size_bytes == 0 || options.requests_in_flight_max == 0 ||
      options.request_deadline.count() <= 0 || options.retries_max < 0 ||
      options.retry_wait.count() < 0) {
    return InvalidArgument(
        "an S3Options number of sizes, requests, deadline or retries is 0 or less, "
        "expected more");
  }
  return {};
}

// Fills in where the bucket is.
Status Locate(Settings& settings) {
  S3Options& options = settings.options;
  const bool is_aws = options.endpoint.empty();
  if (is_aws) {
    options.endpoint = StrCat("https://s3.", options.region, ".amazonaws.com",
                              options.region.starts_with("cn-") ? ".cn" : "");
  }
  std::string_view endpoint = options.endpoint;
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  settings.is_tls = endpoint.starts_with("https://");
  const std::string_view scheme = settings.is_tls ? "https://" : "http://";
  if (!endpoint.starts_with(scheme)) {
    return InvalidArgument("the endpoint of S3 begins with neither https:// nor http://");
  }
  endpoint.remove_prefix(scheme.size());
  const std::size_t slash = endpoint.find('/');
  const std::string_view authority = endpoint.substr(0, slash);
  const std::string_view path = slash == std::string_view::npos ? "" : endpoint.substr(slash);
  if (authority.empty() || authority.find_first_of("@?# ") != std::string_view::npos) {
    // It may hold a password.
    return InvalidArgument(
        "the endpoint of S3 has a user, a query, a fragment or no host, expected ", scheme,
        "host[:port]");
  }
  const bool has_dot = settings.bucket.find('.') != std::string::npos;
  const bool path_style = options.path_style.value_or(!is_aws || has_dot);
  settings.host = path_style ? std::string(authority) : StrCat(settings.bucket, ".", authority);
  settings.base_url = StrCat(scheme, settings.host);
  settings.base_path = path_style ? StrCat(path, "/", settings.bucket) : std::string(path);
  return {};
}

}  // namespace

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FirstOf(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return {};
}

Result<std::string> ReadSmallFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int number = errno;
    const bool is_lacking = number == ENOENT || number == EACCES || number == ENOTDIR;
    return std::move(MakeError(is_lacking ? Code::kNotFound : Code::kIo,
                               "open: ", std::strerror(number), " (errno ", number, ")"))
        .AtPath(path);
  }
  std::string text(kFileSizeMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || text.size() > kFileSizeMax) {
    return std::move(MakeError(Code::kIo, "the file cannot be read, or has more than ",
                               kFileSizeMax, " bytes"))
        .AtPath(path);
  }
  return text;
}

std::string HomePath(std::string_view below) { return StrCat(Variable("HOME"), "/", below); }

std::string Profile::get(std::string_view key) const {
  const auto found = values.find(std::string(key));
  return found == values.end() ? std::string() : found->second;
}

std::map<std::string, Section> ReadIni(std::string_view text) {
  std::map<std::string, Section> out;
  Section* section = nullptr;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view bare = Trimmed(line);
    if (bare.empty() || bare.front() == '#' || bare.front() == ';') continue;
    if (bare.front() == '[') {
      std::string_view name = Trimmed(bare.substr(1, bare.find(']') - 1));
      if (name.starts_with("profile ")) name = Trimmed(name.substr(8));
      section = &out[std::string(name)];
      continue;
    }
    const std::size_t equals = bare.find('=');
    const bool is_nested = line.front() == ' ' || line.front() == '\t';
    if (section == nullptr || equals == std::string_view::npos || is_nested) continue;
    std::string_view value = bare.substr(equals + 1);
    const std::size_t comment = std::min(value.find(" #"), value.find(" ;"));
    (*section)[std::string(Trimmed(bare.substr(0, equals)))] = Trimmed(value.substr(0, comment));
  }
  return out;
}

Result<Profile> ReadProfile(const std::string& given) {
  Profile profile;
  profile.name = FirstOf({given, Variable("AWS_PROFILE"), "default"});
  profile.is_named = !given.empty() || !Variable("AWS_PROFILE").empty();
  SEALPOINT_ASSIGN_OR_RETURN(auto keys,
                             ReadIniFile("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"));
  SEALPOINT_ASSIGN_OR_RETURN(auto config, ReadIniFile("AWS_CONFIG_FILE", ".aws/config"));
  if (profile.is_named && !keys.contains(profile.name) && !config.contains(profile.name)) {
    return InvalidArgument("profile \"", profile.name,
                           "\" of AWS is in neither ~/.aws/config nor ~/.aws/credentials, expected "
                           "there (AWS_PROFILE, S3Options::profile, source_profile)");
  }
  profile.values = keys[profile.name];
  profile.values.merge(config[profile.name]);
  if (const std::string session = profile.get("sso_session"); !session.empty()) {
    profile.values.merge(config[StrCat("sso-session ", session)]);
  }
  return profile;
}

Result<Settings> MakeSettings(std::string_view bucket, S3Options options) {
  Settings settings;
  if (!IsGoodBucket(bucket)) {
    return InvalidArgument("the bucket is \"", bucket,
                           "\", expected 3 to 63 letters, digits, '-', '.' or '_'");
  }
  settings.bucket = bucket;
  SEALPOINT_RETURN_IF_ERROR(CheckOptions(options));
  SEALPOINT_ASSIGN_OR_RETURN(settings.profile, ReadProfile(options.profile));
  const Profile& profile = settings.profile;
  options.endpoint = FirstOf({options.endpoint, Variable("AWS_ENDPOINT_URL_S3"),
                              Variable("AWS_ENDPOINT_URL"), profile.get("endpoint_url")});
  options.region = FirstOf({options.region, Variable("AWS_REGION"), Variable("AWS_DEFAULT_REGION"),
                            profile.get("region"), "us-east-1"});
  options.ca_file = FirstOf({options.ca_file, Variable("AWS_CA_BUNDLE"), profile.get("ca_bundle")});
  settings.options = std::move(options);
  SEALPOINT_RETURN_IF_ERROR(Locate(settings));
  const S3Options& filled = settings.options;
  settings.http = {.ca_file = filled.ca_file,
                   .proxy = filled.proxy,
                   .requests_max = filled.requests_in_flight_max,
                   .deadline = filled.request_deadline,
                   .low_speed_bytes_per_s = filled.low_speed_bytes_per_s,
                   .low_speed_time = filled.low_speed_time};
  return settings;
}

}  // namespace sealpoint::internal::s3
