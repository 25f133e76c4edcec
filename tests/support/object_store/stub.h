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
  // Good keys, small parts and pieces, and no patience.
  S3Options Options() const;
  std::shared_ptr<ObjectStore> Store() const { return S3Store("bucket", Options()).value(); }

  void Reset() { Control("reset"); }
  void Fault(std::string_view operation, std::string_view fault, int times = 1, int skip = 0);
  // Requests since Reset.
  int Count(const std::string& operation);

 private:
  std::string Control(const std::string& what);

  std::FILE* process_;
  std::string url_;
  std::unique_ptr<internal::HttpClient> http_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_OBJECT_STORE_STUB_H_
