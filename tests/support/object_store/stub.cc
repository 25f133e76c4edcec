// SPDX-License-Identifier: Apache-2.0
#include "tests/support/object_store/stub.h"

#include <array>
#include <chrono>

#include <nlohmann/json.hpp>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::testing {

using internal::StrCat;

StubServer::StubServer()
    : process_(popen("exec " SEALPOINT_TEST_PYTHON " -B " SEALPOINT_TEST_STUB, "re")),
      http_(internal::s3::HttpClient::Create({.without_proxy = true}).value()) {
  SEALPOINT_CHECK(process_ != nullptr);
  std::array<char, 32> line{};
  SEALPOINT_CHECK(std::fgets(line.data(), line.size(), process_) != nullptr);
  const std::string port(line.data());
  url_ = StrCat("http://127.0.0.1:", port.substr(0, port.find('\n')));
}

StubServer::~StubServer() {
  Control("end");
  pclose(process_);
}

S3Options StubServer::Options() const {
  return {.endpoint = url_,
          .region = "us-east-1",
          .credentials = []() -> Result<S3Credentials> {
            return S3Credentials{.access_key_id = "AKTEST", .secret_access_key = "secret"};
          },
          .part_size_bytes = 5 * kMiB,
          .get_size_bytes = 1 * kMiB,
          .requests_in_flight_max = 8,
          .retries_max = 3,
          .retry_wait = std::chrono::milliseconds(1)};
}

void StubServer::Fault(std::string_view operation, std::string_view fault, int times, int skip) {
  Control(
      StrCat("fault?operation=", operation, "&fault=", fault, "&times=", times, "&skip=", skip));
}

std::string StubServer::ServeTls(const std::string& certificate, const std::string& key) {
  return StrCat("https://127.0.0.1:",
                Control(StrCat("tls?certificate=", certificate, "&key=", key)));
}

int StubServer::Count(const std::string& operation) {
  return nlohmann::json::parse(Control("counts")).value(operation, 0);
}

int StubServer::CountAll() {
  int sum = 0;
  for (const auto& count : nlohmann::json::parse(Control("counts"))) sum += count.get<int>();
  return sum;
}

std::string StubServer::Control(const std::string& what) {
  return http_->Do({.method = "POST", .url = StrCat(url_, "/_control/", what)}).body;
}

}  // namespace sealpoint::testing
