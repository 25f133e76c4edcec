// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_S3_H_
#define SEALPOINT_S3_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/object_store.h"
#include "sealpoint/status.h"

// Storage in S3-compatible buckets. This code is in a separate library, the target sealpoint::s3,
// which links libcurl (docs/start/install.md). docs/guides/object-stores.md describes the
// environment variables and errors.

namespace sealpoint {

struct S3Credentials {
  std::string access_key_id{};  // empty: requests are not signed (public buckets)
  std::string secret_access_key{};
  std::string session_token{};                           // empty for permanent credentials
  std::optional<std::chrono::sys_seconds> expires_at{};  // refreshed before this time
  friend bool operator==(const S3Credentials&, const S3Credentials&) = default;
};

// A function that returns credentials, for programs that use their own SDK. The library calls the
// function when a store is created, and again before the credentials expire. The library also calls
// the function if the store refuses a request because of expired credentials. Calls may come from
// any thread, one call at a time. If the function returns an error, the request fails.
using CredentialsProvider = std::function<Result<S3Credentials>()>;

// An empty field gets its value from the environment, or, if the environment has no value, from a
// profile. The profile is AWS_PROFILE (or "default") in ~/.aws/config and ~/.aws/credentials, as in
// other S3 clients.
struct S3Options {
  // URL, for example "http://127.0.0.1:8333". Default: AWS_ENDPOINT_URL_S3, then AWS_ENDPOINT_URL,
  // then the endpoint of AWS.
  std::string endpoint{};
  std::string region{};   // default: AWS_REGION, then AWS_DEFAULT_REGION, then "us-east-1"
  std::string profile{};  // default: AWS_PROFILE, then "default"
  // Put the bucket name in the path instead of the host name. Default: true for endpoints other
  // than AWS, and for buckets with a '.' in their name.
  std::optional<bool> path_style{};
  // PEM file with CA certificates, for servers with a certificate that the system does not trust.
  // Default: AWS_CA_BUNDLE, then `ca_bundle` of the profile. The server's certificate and host name
  // are always verified.
  std::string ca_file{};
  // URL of a proxy, "http://host:port". Default: HTTPS_PROXY, or http_proxy (only in lower case)
  // for http:// endpoints. Hosts in NO_PROXY are contacted directly.
  std::string proxy{};
  CredentialsProvider credentials{};  // default: the chain in docs/guides/object-stores.md

  // Size of each upload part except the last, from 5 MiB to 5 GiB. An object can have at most
  // 10,000 parts. EngineOptions::memory_budget_bytes must have room for one part per blob.
  std::uint64_t part_size_bytes = 32 * kMiB;
  // Size of one read request. A longer range is read in pieces of this size.
  std::uint64_t get_size_bytes = 8 * kMiB;
  std::size_t requests_in_flight_max = 64;  // per store; each request has its own connection
  // Maximum duration of one attempt of a request. A request is not retried if more than 2 ×
  // `request_deadline` has passed since the start of its first attempt. An attempt is also aborted
  // if its speed stays below `low_speed_bytes_per_s` for `low_speed_time`.
  std::chrono::milliseconds request_deadline = std::chrono::minutes(5);
  std::uint64_t low_speed_bytes_per_s = 1024;
  std::chrono::seconds low_speed_time = std::chrono::seconds(30);
  // Maximum number of retries of a request that is safe to repeat. The wait before a retry is
  // random; its upper bound starts at `retry_wait` and doubles with each retry, up to 20 s.
  int retries_max = 8;
  std::chrono::milliseconds retry_wait = std::chrono::milliseconds(200);
};

// Creates a client for one bucket, with its own thread for all transfers. Sends no requests except
// to obtain credentials. After fork, every call in the child process fails. Errors: InvalidArgument
// (an option, variable or profile is wrong; no credentials were found), Io.
SEALPOINT_EXPORT Result<std::shared_ptr<ObjectStore>> S3Store(std::string_view bucket,
                                                              S3Options options = {});

// Calls RegisterStorage("s3", …). Paths that begin with s3:// then use ObjectStorage on
// S3Store(bucket, options). The library creates this store when the bucket is first used.
// Thread-safe.
SEALPOINT_EXPORT Status RegisterS3Storage(S3Options options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_S3_H_
