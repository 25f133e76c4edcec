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

// Storage in S3-compatible buckets. It is a separate library that links libcurl: the target
// sealpoint::s3 (docs/start/install.md). docs/guides/object-stores.md describes environment
// variables and errors.

namespace sealpoint {

struct S3Credentials {
  std::string access_key_id{};  // empty: requests are not signed (public buckets)
  std::string secret_access_key{};
  std::string session_token{};                           // empty for permanent credentials
  std::optional<std::chrono::sys_seconds> expires_at{};  // refreshed before this time
  friend bool operator==(const S3Credentials&, const S3Credentials&) = default;
};

// Provides credentials, for programs with their own SDK. Called when a store is created, before the
// credentials expire, and once more after the store reported them as expired; on any thread, one
// call at a time. An error fails the request that needs the credentials.
using CredentialsProvider = std::function<Result<S3Credentials>()>;

// Empty fields are taken from the environment, otherwise from the profile AWS_PROFILE (or
// "default") in ~/.aws/config and ~/.aws/credentials, as in other S3 clients.
struct S3Options {
  std::string
      endpoint{};        // "http://127.0.0.1:8333"; else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS
  std::string region{};  // else AWS_REGION, AWS_DEFAULT_REGION, "us-east-1"
  std::string profile{};  // else AWS_PROFILE, "default"
  // Put the bucket name in the path instead of the host name. Default: true for endpoints other
  // than AWS, and for buckets with '.' in their name.
  std::optional<bool> path_style{};
  // PEM file of certificate authorities, for servers with a certificate unknown to the system.
  // Default: AWS_CA_BUNDLE, then `ca_bundle` of the profile. The server's certificate and host name
  // are always verified.
  std::string ca_file{};
  // "http://host:port". Default: HTTPS_PROXY, or http_proxy (in this spelling) for http://
  // endpoints. Hosts in NO_PROXY are contacted directly.
  std::string proxy{};
  CredentialsProvider credentials{};  // default: the chain in docs/guides/object-stores.md

  // Size of each upload part except the last, 5 MiB to 5 GiB. An object has at most 10,000 parts.
  // EngineOptions::memory_budget_bytes needs room for one part per blob.
  std::uint64_t part_size_bytes = 32 * kMiB;
  // Longer ranges are read in pieces of this size.
  std::uint64_t get_size_bytes = 8 * kMiB;
  std::size_t requests_in_flight_max = 64;  // per store; each keeps a connection
  // Timeout of one attempt; no attempt starts after twice this time. An attempt is also aborted
  // after `low_speed_time` below `low_speed_bytes_per_s`.
  std::chrono::milliseconds request_deadline = std::chrono::minutes(5);
  std::uint64_t low_speed_bytes_per_s = 1024;
  std::chrono::seconds low_speed_time = std::chrono::seconds(30);
  // Maximum number of retries of idempotent requests, with exponential backoff and full jitter: the
  // upper bound of the wait doubles from `retry_wait` up to 20 s.
  int retries_max = 8;
  std::chrono::milliseconds retry_wait = std::chrono::milliseconds(200);
};

// Creates a client of one bucket, with its own thread for all transfers. Makes no requests except
// for credentials. After fork every call in the child fails. Errors: InvalidArgument (an option,
// variable or profile is wrong; no credentials were found), Io.
SEALPOINT_EXPORT Result<std::shared_ptr<ObjectStore>> S3Store(std::string_view bucket,
                                                              S3Options options = {});

// Calls RegisterStorage("s3", …): paths that begin with s3:// then use ObjectStorage on
// S3Store(bucket, options), created on first use. Thread-safe.
SEALPOINT_EXPORT Status RegisterS3Storage(S3Options options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_S3_H_
