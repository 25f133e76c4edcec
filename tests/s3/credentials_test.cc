// SPDX-License-Identifier: Apache-2.0
// Each source of credentials, with the services that some of them ask.
#include "lib/s3/credentials.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
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
  Status PutWith(Variables variables, S3Options options = {}, int times = 1) const {
    variables["HOME"] = home_;
    variables["AWS_ENDPOINT_URL_S3"] = stub_.url();
    variables.emplace("AWS_ENDPOINT_URL_STS", stub_.url() + "/_sts");
    variables["AWS_ENDPOINT_URL_SSO"] = stub_.url() + "/_sso";
    variables.emplace("AWS_EC2_METADATA_DISABLED", "true");
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    const auto store = S3Store("bucket", std::move(options));
    Status status = store.status();
    for (int i = 0; i < times && status.ok(); ++i) status = (*store)->Put("k", AsBytes("x"));
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    return status;
  }

  // What profiles name: keys, programs, tokens.
  void WriteSources() const {
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
              "[profile no_sso]\nsso_start_url = https://none/start\n" +
              "[profile blank_sso]\nsso_start_url = https://blank/start\n" +
              "[profile endless_sso]\nsso_start_url = https://endless/start\n" +
              "[profile other_sso]\nsso_session = corp\nsso_account_id = 123\n" +
              "sso_role_name = Other\n" +
              "[profile empty_sso]\nsso_session = corp\nsso_account_id = 123\n" +
              "sso_role_name = Empty\n" + "[profile text]\ncredential_process = echo text\n" +
              "[profile web]\nrole_arn = arn:role\nweb_identity_token_file = " + home_ + "/web\n");
    const auto cache = [&](const std::string& key, const std::string& until,
                           const std::string& token = "sso-token") {
      const std::string end = until.empty() ? "" : R"(, "expiresAt": ")" + until + "\"";
      Write(".aws/sso/cache/" + internal::s3::Sha1Hex(AsBytes(key)) + ".json",
            R"({"accessToken": ")" + token + "\"" + end + "}");
    };
    cache("https://blank/start", "2099-01-01T00:00:00Z", "");
    cache("https://endless/start", "");
    cache("corp", "2099-01-01T00:00:00Z");
    cache("https://old/start", "2099-01-01T00:00:00Z");
    cache("https://late/start", "2020-01-01T00:00:00Z");
  }
  struct Row {
    Variables variables;
    const char* error;  // empty: it went well
  };
  void ExpectEach(std::span<const Row> rows) const {
    for (const Row& row : rows) {
      const Status status = PutWith(row.variables);
      EXPECT_EQ(status.ok(), *row.error == '\0') << row.error << " " << status.ToString();
      EXPECT_NE(status.ToString().find(row.error), std::string::npos) << status.ToString();
    }
  }

  void WriteRoles() const {
    const std::string keys = "aws_access_key_id = AKTEST\naws_secret_access_key = secret\n";
    const std::string first =
        "role_arn = arn:first\nrole_session_name = run-7\nexternal_id = x & y\n"
        "duration_seconds = 900\n";
    const std::string second = "role_arn = arn:second\n";
    const std::string brief = "role_arn = arn:brief\n";
    const std::pair<const char*, std::string> profiles[] = {
        {"keys", keys},
        {"one", first + "source_profile = keys"},
        {"two", second + "source_profile = one"},
        {"self", first + keys + "source_profile = self"},
        {"by_keys", first + "source_profile = keyed_role"},
        {"keyed_role", second + keys + "source_profile = none"},  // as a source it has keys
        {"environment", first + "credential_source = Environment"},
        {"container", first + "credential_source = EcsContainer"},
        {"instance", first + "credential_source = Ec2InstanceMetadata"},
        {"other_source", first + "credential_source = Other"},
        {"denied", second + "source_profile = keys"},
        {"loop_a", first + "source_profile = loop_b"},
        {"loop_b", first + "source_profile = loop_a"},
        {"alone", first + "source_profile = alone"},
        {"absent", first + "source_profile = none"},
        {"bare", "region = x"},
        {"of_bare", first + "source_profile = bare"},
        {"no_source", first},
        {"mfa", first + "source_profile = keys\nmfa_serial = arn:mfa"},
        {"short", first + "duration_seconds = 60\nsource_profile = keys"},
        {"brief", brief + "source_profile = keys"},
        {"long", "role_arn = arn:long\nduration_seconds = 43200\nsource_profile = keys"},
        {"longer", second + "duration_seconds = 43201\nsource_profile = keys"},
        {"minutes", second + "duration_seconds = 900m\nsource_profile = keys"}};
    std::string config;
    for (const auto& [name, lines] : profiles) {
      config += std::string("[profile ").append(name).append("]\n").append(lines).append("\n");
    }
    Write(".aws/config", config);
  }

  testing::StubServer stub_;
  std::string home_;
};

TEST_F(S3CredentialsTest, EachProfileAnswers) {
  WriteSources();
  const Row rows[] = {
      {{{"AWS_PROFILE", "keys"}}, ""},
      {{{"AWS_PROFILE", "process"}}, ""},
      {{{"AWS_PROFILE", "no_process"}}, "ended with status 3"},
      {{{"AWS_PROFILE", "sso"}}, ""},
      {{{"AWS_PROFILE", "old_sso"}}, ""},
      {{{"AWS_PROFILE", "late_sso"}}, "has expired; run: aws sso login --profile late_sso"},
      {{{"AWS_PROFILE", "no_sso"}}, "no SSO token at "},
      {{{"AWS_PROFILE", "blank_sso"}}, "has expired; run"},
      {{{"AWS_PROFILE", "endless_sso"}}, "has expired; run"},
      {{{"AWS_PROFILE", "other_sso"}}, "SSO answered 401 "},
      {{{"AWS_PROFILE", "empty_sso"}}, "SSO answered 200 "},
      {{{"AWS_PROFILE", "text"}}, "credential_process: the answer is 5 bytes, expected JSON"},
      {{{"AWS_PROFILE", "web"}}, ""},
      {{{"AWS_PROFILE", "absent"}}, "is in neither"},
  };
  ExpectEach(rows);
}

TEST_F(S3CredentialsTest, EachSourceAnswers) {
  WriteSources();
  const std::string url = stub_.url();
  const Row rows[] = {
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}, {"AWS_SECRET_ACCESS_KEY", "secret"}}, ""},
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}, {"AWS_SECRET_ACCESS_KEY", "other"}},
       "SignatureDoesNotMatch"},
      {{{"AWS_ACCESS_KEY_ID", "AKNONE"}, {"AWS_SECRET_ACCESS_KEY", "x"}}, "InvalidAccessKeyId"},
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}}, "expected both or none"},
      {{{"AWS_SECRET_ACCESS_KEY", "secret"}}, "expected both or none"},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/web"}, {"AWS_ROLE_ARN", "arn:role"}}, ""},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/web"}, {"AWS_ROLE_ARN", "arn:x"}},
       "web identity of role arn:x: "},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/none"}, {"AWS_ROLE_ARN", "arn:role"}},
       "web identity: open: No such file"},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", home_ + "/web"}}, "no role"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home_ + "/container"}},
       ""},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"}},
       ""},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"}}, "answered status 401"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/_container"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home_ + "/none"}},
       "container credentials: open: No such file"},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1.example/x"}},
       "at an address of this machine"},
      {{{"AWS_EC2_METADATA_DISABLED", "false"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", url + "/_imds"}},
       ""},
      {{}, "no credentials of AWS were found"},
  };
  ExpectEach(rows);
}

TEST_F(S3CredentialsTest, AnInstanceHasARoleOrNone) {
  const std::string url = stub_.url();
  const auto instance = [&](const char* disabled, const std::string& endpoint, const char* error) {
    const Status status = PutWith(
        {{"AWS_EC2_METADATA_DISABLED", disabled}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint}});
    EXPECT_NE(status.ToString().find(error), std::string::npos) << status.ToString();
  };
  for (const char* const disabled : {"true", "TRUE", "True"}) {
    instance(disabled, url + "/_imds", "no credentials of AWS were found");
  }
  instance("", "http://127.0.0.1:1", "no credentials of AWS were found");
  instance("", url + "/_imds_no_role", "no credentials of AWS were found");
  instance("", url + "/_imds_no_list", "/_imds_no_list answered status 500");
  instance("", url + "/_imds_no_keys", "instance metadata: role role answered status 500");
}

TEST_F(S3CredentialsTest, RolesAreAssumed) {
  WriteRoles();
  struct Row {
    const char* profile;
    const char* error;  // empty: it went well
    Variables further{};
    int asked = 1;
  };
  const Row rows[] = {
      {"one", ""},
      {"two", "", {}, 2},
      {"self", ""},
      {"by_keys", ""},
      {"container",
       "",
       {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", stub_.url() + "/_container"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"}}},
      {"instance",
       "",
       {{"AWS_EC2_METADATA_DISABLED", "false"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", stub_.url() + "/_imds"}}},
      {"instance", "there are no credentials", {}, 0},
      {"other_source", "expected Environment, EcsContainer or Ec2", {}, 0},
      {"denied", "role arn:second of profile \"denied\", which must trust its source"},
      {"loop_a", "\"loop_b\" has source_profile = loop_a, which is a cycle", {}, 0},
      {"alone", "expected a profile with credentials at the end", {}, 0},
      {"absent", "profile \"none\" of AWS is in neither", {}, 0},
      {"of_bare", "\"bare\" is source_profile of \"of_bare\" and has no credentials", {}, 0},
      {"no_source", "expected one of source_profile, credential_source", {}, 0},
      {"mfa", "but no code can be entered here", {}, 0},
      {"short", "duration_seconds = 60, expected 900 to 43200", {}, 0},
      {"long", ""},
      {"longer", "duration_seconds = 43201, expected 900 to 43200", {}, 0},
      {"minutes", "duration_seconds = 900m, expected 900 to 43200", {}, 0},
      {"one", "is other, expected regional", {{"AWS_STS_REGIONAL_ENDPOINTS", "other"}}, 0},
      // Nobody is asked at these addresses: there is no proxy on this port.
      {"one",
       "AssumeRole at https://sts.eu-north-1.amazonaws.com ",
       {{"HTTPS_PROXY", "http://127.0.0.1:1"}},
       0},
      {"one",
       "AssumeRole at https://sts.amazonaws.com ",
       {{"HTTPS_PROXY", "http://127.0.0.1:1"}, {"AWS_STS_REGIONAL_ENDPOINTS", "legacy"}},
       0},
  };
  for (const Row& row : rows) {
    stub_.Reset();
    Variables variables = row.further;
    variables["AWS_PROFILE"] = row.profile;
    variables["AWS_REGION"] = "eu-north-1";
    const bool has_endpoint =
        !variables.contains("HTTPS_PROXY") && !variables.contains("AWS_STS_REGIONAL_ENDPOINTS");
    if (!has_endpoint) variables["AWS_ENDPOINT_URL_STS"] = "";
    const Status status = PutWith(variables);
    EXPECT_EQ(status.ok(), *row.error == '\0') << row.profile << " " << status.ToString();
    EXPECT_NE(status.ToString().find(row.error), std::string::npos) << status.ToString();
    EXPECT_EQ(stub_.Count("AssumeRole"), row.asked) << row.profile << " " << status.ToString();
  }
  // Those of the environment come first; a profile that is named in the call comes before them.
  const Variables variables = {{"AWS_ACCESS_KEY_ID", "AKTEST"},
                               {"AWS_SECRET_ACCESS_KEY", "secret"},
                               {"AWS_REGION", "eu-north-1"}};
  stub_.Reset();
  EXPECT_TRUE(PutWith(variables, {.profile = "environment"}).ok());
  EXPECT_EQ(stub_.Count("AssumeRole"), 1);
}

// Ten minutes before their end, but not for each request: a source may give the same ones again.
TEST_F(S3CredentialsTest, TheyAreAskedForAgainBeforeTheyEnd) {
  int asked = 0;
  const auto brief = [&asked]() -> Result<S3Credentials> {
    if (++asked % 2 == 0) return Status(Code::kIo, "busy");
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    return S3Credentials{.access_key_id = "a",
                         .secret_access_key = "b",
                         .expires_at = now + std::chrono::minutes(5)};
  };
  internal::s3::CredentialsCache patient(brief);
  internal::s3::CredentialsCache eager(brief, std::chrono::milliseconds(0));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(patient.Get().ok());
  EXPECT_EQ(asked, 1);
  asked = 0;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(eager.Get().ok()) << "the old ones are still good";
  EXPECT_EQ(asked, 4);
}

TEST_F(S3CredentialsTest, AServiceThatIsBusyIsAskedAgain) {
  WriteRoles();
  const std::pair<int, int> rows[] = {{2, 3}, {3, 3}};
  for (const auto& [faults, asked] : rows) {
    stub_.Reset();
    stub_.Fault("AssumeRole", "slowdown", faults);
    const Status status = PutWith({{"AWS_REGION", "eu-north-1"}}, {.profile = "one"});
    EXPECT_EQ(status.ok(), faults == 2) << status.ToString();
    EXPECT_EQ(stub_.Count("AssumeRole"), asked);
  }
}

// Another identity is not what the caller set up, and what it set up may be a secret.
TEST_F(S3CredentialsTest, AFileThatWasNamedIsThere) {
  const Variables instance = {{"AWS_EC2_METADATA_DISABLED", ""},
                              {"AWS_EC2_METADATA_SERVICE_ENDPOINT", stub_.url() + "/_imds"}};
  EXPECT_TRUE(PutWith(instance).ok());
  for (const char* const variable : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) {
    Variables variables = instance;
    variables[variable] = home_ + "/typo";
    const Status status = PutWith(variables);
    EXPECT_EQ(status.code(), Code::kIo) << "not as if nothing had been saved: " << variable;
    EXPECT_NE(status.ToString().find(variable), std::string::npos) << status.ToString();
    variables.merge(
        Variables{{"AWS_ACCESS_KEY_ID", "AKTEST"}, {"AWS_SECRET_ACCESS_KEY", "secret"}});
    EXPECT_TRUE(PutWith(variables).ok()) << "no profile is needed";
  }
}

TEST_F(S3CredentialsTest, MessagesHaveNoSecrets) {
  Write(".aws/config", "[profile p]\ncredential_process = TOKEN=topsecret false\n");
  for (const auto& [options, word] :
       {std::pair(S3Options{.profile = "p"}, "credential_process"),
        std::pair(S3Options{.endpoint = "http://u:topsecret@host"}, "user"),
        std::pair(S3Options{.endpoint = "u:topsecret@host"}, "http")}) {
    const std::string text = PutWith({}, options).ToString();
    EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_EQ(text.find("topsecret"), std::string::npos) << text;
  }
}

// With one file descriptor that is free, where its output needs two.
TEST_F(S3CredentialsTest, AProcessThatCannotBeStartedIsAnError) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free = ::dup(STDOUT_FILENO);
  ASSERT_EQ(::close(free), 0);
  const rlimit one{.rlim_cur = static_cast<rlim_t>(free) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one), 0);
  const Status status = internal::s3::CredentialsOfProcess("true").status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(status.message().find("cannot be started"), std::string::npos) << status.ToString();
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
