// SPDX-License-Identifier: Apache-2.0
// Certificates and proxies. The authority and its certificates are made by the test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sealpoint/s3.h"
#include "tests/support/object_store/stub.h"

namespace sealpoint {
namespace {

constexpr char kMakeCertificates[] = R"(
openssl ecparam -name prime256v1 -genkey -noout -out key.pem
openssl req -x509 -new -key key.pem -subj /CN=authority -days 2 -out ca.pem
openssl req -new -key key.pem -subj /CN=server -out request.pem
sign() {
  echo "subjectAltName=$2" > names
  openssl x509 -req -in request.pem -CA ca.pem -CAkey key.pem -CAcreateserial -extfile names \
    -days $3 -out $1.pem
}
sign good IP:127.0.0.1 2 && sign other DNS:other.example 2 && sign expired IP:127.0.0.1 -1
)";

class S3TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v openssl > /dev/null") != 0) GTEST_SKIP() << "no program openssl";
    std::filesystem::create_directories(folder_);
    const std::string make =
        "cd " + folder_ + " && (set -e" + kMakeCertificates + ") > /dev/null 2>&1";
    ASSERT_EQ(std::system(make.c_str()), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  std::string Serve(const std::string& certificate) {
    return stub_.ServeTls(File(certificate), File("key.pem"));
  }
  // A conditional put and a reading of it, in an environment with these variables.
  Status PutAndGet(S3Options options, const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    const auto store = S3Store("bucket", std::move(options)).value();
    Status status = store->PutIfAbsent("k", AsBytes("0123456789"));
    Bytes out;
    if (status.ok()) status = store->GetFirst("k", 99, out).status();
    if (status.ok()) EXPECT_EQ(AsText(out), "0123456789");
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    return status;
  }

  testing::StubServer stub_;
  const std::string folder_ = ::testing::TempDir() + "s3_tls_" + std::to_string(::getpid());
};

// Destroyed behind all that OpenSSL and libcurl do when the process ends, since it is there before.
std::function<bool()> at_end;
struct AtEnd {
  ~AtEnd() {
    if (at_end && !at_end()) _exit(1);
  }
} ends_last;

// As the saver does that is a global object and has a save in the background.
TEST_F(S3TlsTest, StoresServeGlobalObjectsUntilTheEnd) {
  S3Options options = stub_.Options();
  options.endpoint = Serve("good.pem");
  options.ca_file = File("ca.pem");
  const auto leave = [&] {
    const std::shared_ptr<ObjectStore> store = S3Store("bucket", options).value();
    at_end = [store] {
      const Status put = store->PutIfAbsent("end", AsBytes("0123456789"));
      std::fprintf(stderr, "at the end: %s", put.ToString().c_str());
      return put.ok();
    };
    std::exit(store->PutIfAbsent("begin", AsBytes("0123456789")).ok() ? 0 : 2);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0), "");
}

TEST_F(S3TlsTest, TheServerIsVerified) {
  const std::string good = Serve("good.pem");
  struct Row {
    std::string url;
    const char* ca_file;
    const char* variable;  // AWS_CA_BUNDLE
    const char* error;     // empty: it goes well
    const char* advice = "";
  };
  const Row rows[] = {
      {good, "ca.pem", "", ""},
      {good, "", "ca.pem", ""},
      {good, "ca.pem", "missing.pem", ""},
      {good, "", "", "certificate", "AWS_CA_BUNDLE or S3Options::ca_file"},
      {good, "other.pem", "", "certificate", "AWS_CA_BUNDLE or S3Options::ca_file"},
      {good, "missing.pem", "", "missing.pem", "expected a readable file of certificates"},
      {Serve("other.pem"), "ca.pem", "", "127.0.0.1", "check the host name of the endpoint"},
      {Serve("expired.pem"), "ca.pem", "", "expired", "and the clock"},
      {"https" + stub_.url().substr(4), "ca.pem", "", "PutObject at https://", "speaks TLS"},
  };
  for (const Row& row : rows) {
    stub_.Reset();
    S3Options options = stub_.Options();
    options.endpoint = row.url;
    if (*row.ca_file != '\0') options.ca_file = File(row.ca_file);
    std::map<std::string, std::string> variables;
    if (*row.variable != '\0') variables["AWS_CA_BUNDLE"] = File(row.variable);
    const Status status = PutAndGet(std::move(options), variables);
    EXPECT_EQ(status.ok(), *row.error == '\0') << status.ToString();
    EXPECT_NE(status.ToString().find(row.error), std::string::npos) << status.ToString();
    EXPECT_NE(status.ToString().find(row.advice), std::string::npos) << status.ToString();
    EXPECT_FALSE(status.has_unknown_outcome()) << status.ToString();
    EXPECT_EQ(stub_.Count("PutObject"), status.ok() ? 1 : 0);
  }
}

TEST_F(S3TlsTest, ProxiesAreThoseOfTheEnvironment) {
  const std::string tls = Serve("good.pem");
  const std::string proxy = stub_.url();
  struct Row {
    std::string url;
    std::map<std::string, std::string> variables;
    std::string option;
    int tunnels = 0;
    bool is_proxied = false;
  };
  const Row rows[] = {
      {tls, {}, "", 0, false},
      {tls, {{"HTTPS_PROXY", proxy}}, "", 1, false},
      {tls, {{"HTTPS_PROXY", proxy}, {"NO_PROXY", "127.0.0.1"}}, "", 0, false},
      {tls, {}, proxy, 1, false},
      {tls, {{"HTTPS_PROXY", "http://127.0.0.1:1"}}, proxy, 1, false},
      {proxy, {{"http_proxy", proxy}}, "", 0, true},
      {proxy, {{"http_proxy", proxy}, {"no_proxy", "127.0.0.1"}}, "", 0, false},
  };
  for (const Row& row : rows) {
    stub_.Reset();
    S3Options options = stub_.Options();
    options.endpoint = row.url;
    options.ca_file = File("ca.pem");
    options.proxy = row.option;
    const Status status = PutAndGet(std::move(options), row.variables);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(stub_.Count("CONNECT") > 0, row.tunnels > 0) << row.url;
    EXPECT_EQ(stub_.Count("proxied") > 0, row.is_proxied) << row.url;
  }
}

}  // namespace
}  // namespace sealpoint
