// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/http_transfer.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr std::size_t kHeadersMax = 128;
constexpr std::size_t kErrorBodyMax = 64 * kKiB;

Transport TransportOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return Transport::kOk;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:  // before the request
      return Transport::kNotSent;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return Transport::kHopeless;
    default:
      return Transport::kAmbiguous;
  }
}

// What to do about it, behind what libcurl says.
std::string_view AdviceFor(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return "; set the certificate of the server's authority in AWS_CA_BUNDLE or "
             "S3Options::ca_file, or check the host name of the endpoint and the clock";
    case CURLE_SSL_CACERT_BADFILE:
      return "; expected a readable file of certificates in PEM (AWS_CA_BUNDLE, "
             "S3Options::ca_file)";
    case CURLE_SSL_CONNECT_ERROR:
      return "; check whether the server speaks TLS: the endpoint begins with https://";
    default:
      return "";
  }
}

template <typename T>
void Set(CURL* handle, CURLoption option, T value) {
  // Fails only if the libcurl that is loaded is older than its headers.
  static_cast<void>(curl_easy_setopt(handle, option, value));
}

}  // namespace

HttpTransfer::~HttpTransfer() {
  if (handle_ != nullptr) curl_easy_cleanup(handle_);
  curl_slist_free_all(headers_);
}

void HttpTransfer::Prepare(CURL* handle, const HttpOptions& options) {
  handle_ = handle;
  curl_easy_reset(handle);
  Set(handle, CURLOPT_URL, request_.url.c_str());
  Set(handle, CURLOPT_ERRORBUFFER, error_text_.data());
  Set(handle, CURLOPT_NOSIGNAL, 1L);
  Set(handle, CURLOPT_PATH_AS_IS, 1L);  // a key may have "/../" in it
  Set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(handle, CURLOPT_BUFFERSIZE, 512L * 1024);
  Set(handle, CURLOPT_UPLOAD_BUFFERSIZE, 1024L * 1024);
  Set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(options.deadline.count()));
  Set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_deadline.count()));
  if (!request_.may_be_silent) {
    Set(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options.low_speed_bytes_per_s));
    Set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.low_speed_time.count()));
  }
  if (!options.ca_file.empty()) Set(handle, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.proxy.empty()) Set(handle, CURLOPT_PROXY, options.proxy.c_str());
  if (options.without_proxy) Set(handle, CURLOPT_NOPROXY, "*");
  if (request_.sent_once) Set(handle, CURLOPT_FRESH_CONNECT, 1L);
  Set(handle, CURLOPT_WRITEFUNCTION, &OnBody);
  Set(handle, CURLOPT_WRITEDATA, static_cast<void*>(this));
  Set(handle, CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(handle, CURLOPT_HEADERDATA, static_cast<void*>(this));
  if (request_.is_head) {
    Set(handle, CURLOPT_NOBODY, 1L);
  } else if (request_.method != "GET" && request_.method != "DELETE") {
    // The bytes are sent from where they lie, and can be sent again from their beginning.
    Set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    Set(handle, CURLOPT_POSTFIELDS,
        request_.body.empty() ? "" : reinterpret_cast<const char*>(request_.body.data()));
  }
  if (!request_.is_head) Set(handle, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  for (const auto& [name, value] : request_.headers) {
    headers_ = curl_slist_append(headers_, StrCat(name, ": ", value).c_str());
  }
  // What libcurl would add, and the signature does not know, or what costs a round trip.
  for (const char* unwanted : {"Expect:", "Content-Type:", "Accept:"}) {
    headers_ = curl_slist_append(headers_, unwanted);
  }
  Set(handle, CURLOPT_HTTPHEADER, headers_);
}

CURL* HttpTransfer::TakeHandle() { return std::exchange(handle_, nullptr); }

void HttpTransfer::Finish(CURLcode code) {
  // More came than was wanted: the transfer was ended here, and the answer is there.
  if (code == CURLE_WRITE_ERROR && reply_.passed_sink) code = CURLE_OK;
  reply_.transport = TransportOf(code);
  if (code != CURLE_OK) {
    reply_.transport_error =
        StrCat(error_text_.front() != '\0' ? error_text_.data() : curl_easy_strerror(code),
               AdviceFor(code));
  }
  done_(std::move(reply_));
}

std::size_t HttpTransfer::OnBody(char* data, std::size_t /*size*/, std::size_t count, void* p) {
  auto& self = *static_cast<HttpTransfer*>(p);
  HttpReply& reply = self.reply_;
  if (!self.request_.sink.empty() && reply.status >= 200 && reply.status < 300) {
    const std::size_t room = self.request_.sink.size() - reply.sink_bytes;
    const std::size_t taken = std::min(room, count);
    std::memcpy(self.request_.sink.data() + reply.sink_bytes, data, taken);
    reply.sink_bytes += taken;
    reply.passed_sink = taken < count;
  } else {
    // What an error says is wanted whole, however little was asked for.
    const bool is_good = reply.status >= 200 && reply.status < 300;
    const std::size_t max =
        is_good ? self.request_.body_max : std::max(self.request_.body_max, kErrorBodyMax);
    const std::size_t taken = std::min(max - reply.body.size(), count);
    reply.body.append(data, taken);
    reply.passed_sink = taken < count;
  }
  return reply.passed_sink ? 0 : count;
}

std::size_t HttpTransfer::OnHeader(char* data, std::size_t /*size*/, std::size_t count, void* p) {
  HttpReply& reply = static_cast<HttpTransfer*>(p)->reply_;
  const std::string_view line(data, count);
  if (line.starts_with("HTTP/")) {  // also after an answer 100: what came before does not count
    reply.headers.clear();
    const std::size_t space = line.find(' ');
    reply.status = 0;
    for (std::size_t i = space + 1; i < line.size() && std::isdigit(line[i]) != 0; ++i) {
      reply.status = reply.status * 10 + (line[i] - '0');
      if (reply.status > 999) return 0;
    }
    return count;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  if (reply.headers.size() == kHeadersMax) return 0;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  reply.headers[std::move(name)] = std::string(value);
  return count;
}

}  // namespace sealpoint::internal::s3
