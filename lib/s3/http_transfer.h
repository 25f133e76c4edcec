// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_HTTP_TRANSFER_H_
#define SEALPOINT_LIB_S3_HTTP_TRANSFER_H_

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "lib/s3/http_client.h"

namespace sealpoint::internal::s3 {

// One request on an easy handle of libcurl.
class HttpTransfer {
 public:
  HttpTransfer(HttpRequest request, std::function<void(HttpReply)> done)
      : request_(std::move(request)), done_(std::move(done)) {}
  ~HttpTransfer();
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  // Takes the handle over; it is given back by TakeHandle.
  void Prepare(CURL* handle, const HttpOptions& options);
  CURL* handle() const { return handle_; }
  CURL* TakeHandle();
  // Calls `done`.
  void Finish(CURLcode code);

 private:
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* transfer);
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* transfer);

  HttpRequest request_;
  std::function<void(HttpReply)> done_;
  HttpReply reply_;
  CURL* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_HTTP_TRANSFER_H_
