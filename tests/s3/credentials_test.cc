// SPDX-License-Identifier: Apache-2.0
// Each source of credentials, with the services that some of them ask.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "lib/s3/sigv4.h"
#include "sealpoint/s3.h"
#include "tests/support/object_store/stub.h"

namespace sealpoint {
namespace {

using Variables = std::map<std::string, std::string>;

class S3CredentialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stub_.Reset();
    home_ = ::testing::TempDir() + "s3_home_" + std::to_string(::getpid());
    std::filesystem::create_directories(home_ + "/.aws/sso/cache");
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(home_ + "/" + name) << text;
  }

  // What a put says in an environment of these variables alone.
  Status PutWith(Variables variables) const {
    variables["HOME"] = home_;
    variables["AWS_ENDPOINT_URL_S3"] = stub_.url();
    variables["AWS_ENDPOINT_URL_STS"] = stub_.url() + "/_sts";
    variables["AWS_ENDPOINT_URL_SSO"] = stub_.url() + "/_sso";
    variables.emplace("AWS_EC2_METADATA_DISABLED", "true");
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    const auto store = S3Store("bucket");
    const Status status = store.ok() ? (*store)->Put("k", AsBytes("x")) : store.error();
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    return status;
  }

  testing::StubServer stub_;
  std::string home_;
};

TEST_F(S3CredentialsTest, EachSourceAnswers) {
  const std::string keys = "aws_access_key_id = AKTEST\naws_secret_access_key = secret\n";
  const std::string json =
      R"({"Version": 1, "AccessKeyId": "AKTEST", "SecretAccessKey": "secret"})";
  Write(".aws/credentials", "[default]\n[keys]\n" + keys);
  Write("json", json);
  Write("web", "web-token\n");
  Write("container", "container-token\n");
  Write(".aws/config",
        "[profile process]\ncredential_process = cat " + home_ + "/json\n" +
            "[profile no_process]\ncredential_process = exit 3\n" +
            "[profile sso]\nsso_session = corp\nsso_account_id = 123\nsso_role_name = Reader\n" +
            "[sso-session corp]\nsso_region = x\nsso_start_url = https://corp/start\n" +
            "[profile old_sso]\nsso_start_url = https://old/start\nsso_region = x\n" +
            "sso_account_id = 123\nsso_role_name = Reader\n" +
            "[profile late_sso]\nsso_start_url = https://late/start\n" +
            "[profile web]\nrole_arn = arn:role\nweb_identity_token_file = " + home_ + "/web\n" +
            "[profile chain]\nrole_arn = arn:role\nsource_profile = keys\n");
  const auto cache = [&](const std::string& key, const std::string& until) {
    Write(".aws/sso/cache/" + internal::Sha1Hex(AsBytes(key)) + ".json",
          R"({"accessToken": "sso-token", "expiresAt": ")" + until + "\"}");
  };
  cache("corp", "2099-01-01T00:00:00Z");
  cache("https://old/start", "2099-01-01T00:00:00Z");
  cache("https://late/start", "2020-01-01T00:00:00Z");
  struct Row {
    Variables variables;
    const char* error;  // empty: it went well
  };
  const std::string url = stub_.url();
  const Row rows[] = {
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}, {"AWS_SECRET_ACCESS_KEY", "secret"}}, ""},
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}, {"AWS_SECRET_ACCESS_KEY", "other"}},
       "SignatureDoesNotMatch"},
      {{{"AWS_ACCESS_KEY_ID", "AKNONE"}, {"AWS_SECRET_ACCESS_KEY", "x"}}, "InvalidAccessKeyId"},
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}}, "expected both or none"},
      {{{"AWS_PROFILE", "keys"}}, ""},
      {{{"AWS_PROFILE", "process"}}, ""},
      {{{"AWS_PROFILE", "no_process"}}, "ended with status 3"},
      {{{"AWS_PROFILE", "sso"}}, ""},
      {{{"AWS_PROFILE", "old_sso"}}, ""},
      {{{"AWS_PROFILE", "late_sso"}}, "has expired; run: aws sso login --profile late_sso"},
      {{{"AWS_PROFILE", "web"}}, ""},
      {{{"AWS_PROFILE", "chain"}}, "export-credentials --profile chain"},
      {{{"AWS_PROFILE", "absent"}}, "is in neither"},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/web"}, {"AWS_ROLE_ARN", "arn:role"}}, ""},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/web"}, {"AWS_ROLE_ARN", "arn:x"}},
       "answered status 403"},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/web"}}, "no role"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home_ + "/container"}},
       ""},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"}},
       ""},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"}}, "answered status 401"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1.example/x"}},
       "at an address of this machine"},
      {{{"AWS_EC2_METADATA_DISABLED", "false"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", url + "/_imds"}},
       ""},
      {{}, "no credentials of AWS were found"},
  };
  for (const Row& row : rows) {
    const Status status = PutWith(row.variables);
    EXPECT_EQ(status.ok(), *row.error == '\0') << row.error << " " << status.ToString();
    EXPECT_NE(status.ToString().find(row.error), std::string::npos) << status.ToString();
  }
}

TEST_F(S3CredentialsTest, ExpiredOnesAreRenewedOnce) {
  int asked = 0;
  S3Options options = stub_.Options();
  options.credentials = [&asked]() -> Result<S3Credentials> {
    return ++asked == 1 ? S3Credentials{.access_key_id = "AKOLD", .secret_access_key = "old"}
                        : S3Credentials{.access_key_id = "AKTEST", .secret_access_key = "secret"};
  };
  const auto store = S3Store("bucket", options).value();
  EXPECT_TRUE(store->PutIfAbsent("k", AsBytes("x")).ok());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(stub_.Count("PutObject"), 1);
}

}  // namespace
}  // namespace sealpoint
