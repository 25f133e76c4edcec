// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_OBJECT_STORE_STUB_H_
#define SEALPOINT_TESTS_SUPPORT_OBJECT_STORE_STUB_H_

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lib/s3/http_client.h"
#include "sealpoint/s3.h"

namespace sealpoint::testing {

// stub_server.py, which says what each function does, as a process that ends with this.
class StubServer {
 public:
  StubServer();
  ~StubServer();
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;

  const std::string& url() const { return url_; }
  // Good keys, small parts and pieces, and short waits before few repetitions.
  S3Options Options() const;
  std::shared_ptr<ObjectStore> Store() const { return S3Store("bucket", Options()).value(); }

  void Reset() { Control("reset"); }
  void Heal() { Control("heal"); }  // no faults any more
  void Fault(std::string_view operation, std::string_view fault, int times = 1, int skip = 0);
  // The same bucket over TLS: "https://127.0.0.1:PORT".
  std::string ServeTls(const std::string& certificate, const std::string& key);
  // Requests since Reset.
  int Count(const std::string& operation);
  int CountAll();

 private:
  std::string Control(const std::string& what);

  std::FILE* process_;
  std::string url_;
  std::unique_ptr<internal::s3::HttpClient> http_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_OBJECT_STORE_STUB_H_
