// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/settings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/s3/credentials.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::internal::s3 {
namespace {

TEST(S3Settings, ReadsProfileFiles) {
  const auto sections = ReadIni(
      "# note\n[default]\nregion = eu-west-1 # here\ns3 =\n  addressing_style = path\n"
      "[profile a b]\r\nkey=va=lue\r\n; note\nno equals\n[sso-session s]\nsso_region = x");
  EXPECT_EQ(sections.at("default"), (Section{{"region", "eu-west-1"}, {"s3", ""}}));
  EXPECT_EQ(sections.at("a b"), (Section{{"key", "va=lue"}}));
  EXPECT_EQ(sections.at("sso-session s"), (Section{{"sso_region", "x"}}));
}

TEST(S3Settings, WhereTheBucketIs) {
  setenv("HOME", "/nonexistent", 1);
  const std::string longest(63, 'b');
  const std::string longer(64, 'b');
  struct Row {
    S3Options options;
    const char* bucket;
    std::string url;  // of the bucket, or what the error says
  };
  const Row rows[] = {
      {{.region = "eu-west-1"}, "buck", "https://buck.s3.eu-west-1.amazonaws.com"},
      {{.region = "cn-north-1"}, "buck", "https://buck.s3.cn-north-1.amazonaws.com.cn"},
      {{}, "a.b", "https://s3.us-east-1.amazonaws.com/a.b"},
      {{.endpoint = "http://127.0.0.1:1/"}, "buck", "http://127.0.0.1:1/buck"},
      {{.endpoint = "http://h/sub"}, "buck", "http://h/sub/buck"},
      {{.endpoint = "https://h", .path_style = false}, "buck", "https://buck.h"},
      {{.endpoint = "h:80"}, "buck", "begins with neither https"},
      {{.endpoint = "http://u:p@h"}, "buck", "has a user"},
      {{.profile = "absent"}, "buck", "is in neither"},
      {{}, "a/b", "expected 3 to 63"},
      {{.part_size_bytes = 5 * kMiB - 1}, "buck", "part_size_bytes is 5242879, expected 5242880"},
      {{.part_size_bytes = 5 * kGiB}, "buck", "https://buck.s3.us-east-1.amazonaws.com"},
      {{.part_size_bytes = 5 * kGiB + 1}, "buck", "part_size_bytes is 5368709121"},
      {{.get_size_bytes = 0}, "buck", "expected more"},
      {{.requests_in_flight_max = 0}, "buck", "expected more"},
      {{.request_deadline = std::chrono::milliseconds(0)}, "buck", "expected more"},
      {{.request_deadline = std::chrono::milliseconds(-1)}, "buck", "expected more"},
      {{.retries_max = -1}, "buck", "expected more"},
      {{.retry_wait = std::chrono::milliseconds(-1)}, "buck", "expected more"},
      {{.retries_max = 0, .retry_wait = std::chrono::milliseconds(0)},
       "buck",
       "https://buck.s3.us-east-1.amazonaws.com"},
      {{.endpoint = "http:///x"}, "buck", "expected http://host"},
      {{}, "ab", "expected 3 to 63"},
      {{}, longest.c_str(), "https://" + longest + ".s3.us-east-1.amazonaws.com"},
      {{}, longer.c_str(), "expected 3 to 63"},
  };
  for (const Row& row : rows) {
    const auto settings = MakeSettings(row.bucket, row.options);
    if (settings.ok()) {
      EXPECT_EQ(settings->base_url + settings->base_path, row.url);
    } else {
      EXPECT_NE(settings.error().message().find(row.url), std::string::npos)
          << settings.error().ToString();
    }
  }
}

// 1 MiB is the most; what is there but cannot be read is not taken for absent.
TEST(S3Settings, FilesAreBounded) {
  const testing::TempDir folder;
  const std::string path = folder / "config";
  for (const std::size_t size : {kMiB, kMiB + 1}) {
    std::ofstream(path) << std::string(size, '#');
    const auto text = ReadSmallFile(path);
    EXPECT_EQ(text.ok(), size == kMiB) << size;
    if (!text.ok()) EXPECT_EQ(text.error().code(), Code::kIo);
  }
  setenv("AWS_CONFIG_FILE", path.c_str(), 1);
  EXPECT_EQ(MakeSettings("buck", {}).error().code(), Code::kIo);
  setenv("AWS_CONFIG_FILE", folder.path().c_str(), 1);
  EXPECT_EQ(MakeSettings("buck", {}).error().code(), Code::kIo) << "a directory";
  unsetenv("AWS_CONFIG_FILE");
}

TEST(S3Settings, CredentialsInJsonAreWhole) {
  EXPECT_TRUE(CredentialsFromJson(R"({"AccessKeyId": "a", "SecretAccessKey": "b"})", "Token").ok());
  for (const char* const text :
       {"", "[]", R"({"AccessKeyId": "a"})", R"({"SecretAccessKey": "b"})"}) {
    EXPECT_EQ(CredentialsFromJson(text, "Token").error().code(), Code::kIo) << text;
  }
}

TEST(S3Settings, Times) {
  EXPECT_EQ(ParseTime("1970-01-02T00:00:01Z")->time_since_epoch().count(), 86401);
  EXPECT_EQ(ParseTime("1970-01-02T00:00:01.5Z")->time_since_epoch().count(), 86401);
  EXPECT_FALSE(ParseTime("soon"));
}

TEST(S3Settings, CacheAsksAgainBeforeTheEndAndAfterARefusal) {
  int asked = 0;
  auto lifetime = std::chrono::hours(1);
  CredentialsCache cache([&]() -> Result<S3Credentials> {
    if (++asked == 4) return Status(Code::kIo, "down");
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    return S3Credentials{.access_key_id = std::to_string(asked), .expires_at = now + lifetime};
  });
  const S3Credentials first = *cache.Get();
  EXPECT_EQ(cache.Get()->access_key_id, "1");
  lifetime = std::chrono::hours(0);
  EXPECT_EQ(cache.Get(&first)->access_key_id, "2");
  lifetime = std::chrono::hours(1);
  EXPECT_EQ(cache.Get(&first)->access_key_id, "3");  // the second ones were at their end
  EXPECT_EQ(cache.Get(&first)->access_key_id, "3");  // somebody else has asked already
  const S3Credentials third = *cache.Get();
  EXPECT_EQ(cache.Get(&third).error().message(), "credentials: down");
  EXPECT_EQ(cache.Get()->access_key_id, "3");

  bool is_down = false;
  CredentialsCache late([&]() -> Result<S3Credentials> {
    if (is_down) return Status(Code::kIo, "down");
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    return S3Credentials{.access_key_id = "a", .expires_at = now - std::chrono::seconds(2)};
  });
  ASSERT_TRUE(late.Get().ok());
  is_down = true;
  EXPECT_EQ(late.Get().error().message(), "credentials: down") << "the old ones have ended";
}

}  // namespace
}  // namespace sealpoint::internal::s3
