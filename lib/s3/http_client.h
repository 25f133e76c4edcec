// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_HTTP_CLIENT_H_
#define SEALPOINT_LIB_S3_HTTP_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

// HTTP over libcurl. This header does not expose libcurl.

namespace sealpoint::internal::s3 {

struct HttpOptions {
  std::string ca_file{};
  std::string proxy{};         // empty: as curl reads the environment
  bool without_proxy = false;  // whatever the environment says
  std::size_t requests_max = 64;
  std::chrono::milliseconds deadline = std::chrono::minutes(5);
  std::chrono::milliseconds connect_deadline = std::chrono::seconds(10);
  std::uint64_t low_speed_bytes_per_s = 1024;
  std::chrono::seconds low_speed_time = std::chrono::seconds(30);
};

struct HttpRequest {
  std::string method{};
  std::string url{};
  std::map<std::string, std::string> headers{};
  ByteSpan body{};         // stays as it is until `done`
  MutableByteSpan sink{};  // receives the body of a response 2xx; a longer body ends the transfer
  // Without a sink, and for other answers: how much of the body is kept. More ends the transfer.
  std::size_t body_max = 64 * kKiB;
  bool is_head = false;
  // A new connection, on which libcurl itself never sends a request for a second time.
  bool sent_once = false;
  bool may_be_silent = false;  // no low-speed limit: the server may think for long
};

// How far a request came that has no answer.
enum class Transport : std::uint8_t {
  kOk,
  kNotSent,    // the server received nothing
  kAmbiguous,  // it may have taken effect
  kHopeless,   // a wrong certificate or URL: the next try would end as this one
};

struct HttpReply {
  Transport transport = Transport::kOk;
  std::string transport_error{};
  int status = 0;                                // 0: no answer
  std::map<std::string, std::string> headers{};  // lower-case names
  std::string body{};                            // without the bytes written to the sink
  std::uint64_t sink_bytes = 0;
  bool passed_sink = false;  // the body exceeded the sink or body_max

  std::string header(std::string_view name) const;
  bool is_good() const { return transport == Transport::kOk && status >= 200 && status < 300; }
};

// Runs requests on its own thread, at most requests_max simultaneously; the others wait. The
// destructor waits for all. Thread safety: all functions.
class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> Create(const HttpOptions& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `done` runs on that thread, once, and must not wait for another request.
  void Start(HttpRequest request, std::function<void(HttpReply)> done);
  HttpReply Do(HttpRequest request);

 private:
  class Loop;
  explicit HttpClient(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_HTTP_CLIENT_H_
