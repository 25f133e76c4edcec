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

// Buckets that speak the protocol of Amazon S3. In a library of its own, which links libcurl: the
// target sealpoint::s3 (docs/start/install.md). docs/guides/object-stores.md says what the
// variables of the environment mean and what each error asks for.

namespace sealpoint {

struct S3Credentials {
  std::string access_key_id{};  // empty: requests are not signed (public buckets)
  std::string secret_access_key{};
  std::string session_token{};                           // empty for those that do not expire
  std::optional<std::chrono::sys_seconds> expires_at{};  // asked for again before this
  friend bool operator==(const S3Credentials&, const S3Credentials&) = default;
};

// Where signatures come from: for programs that have an SDK of their own. Called when a store is
// made, before the credentials expire, and once more after the store called them expired; on any
// thread, by one at a time. An error fails the request that needed them.
using CredentialsProvider = std::function<Result<S3Credentials>()>;

// What is empty is taken from the environment, else from the profile AWS_PROFILE (or "default") of
// ~/.aws/config and ~/.aws/credentials, as other clients of S3 do.
struct S3Options {
  std::string
      endpoint{};        // "http://127.0.0.1:8333"; else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS
  std::string region{};  // else AWS_REGION, AWS_DEFAULT_REGION, "us-east-1"
  std::string profile{};  // else AWS_PROFILE, "default"
  // Whether the bucket stands in the path and not in the host name; without a value for endpoints
  // other than those of AWS, and for buckets with '.' in their name.
  std::optional<bool> path_style{};
  // Certificates of authorities in PEM, for servers whose own is not known to the system; else
  // AWS_CA_BUNDLE, `ca_bundle` of the profile. The server's certificate and its host name are
  // always verified.
  std::string ca_file{};
  // "http://host:port"; else HTTPS_PROXY, or http_proxy (in this spelling) for endpoints of
  // http://. Hosts of NO_PROXY are asked without it.
  std::string proxy{};
  CredentialsProvider credentials{};  // else the chain of docs/guides/object-stores.md

  // The size of each part of an upload but the last, 5 MiB to 5 GiB; an object has at most 10,000
  // parts. EngineOptions::memory_budget_bytes needs room for one part of each blob.
  std::uint64_t part_size_bytes = 32 * kMiB;
  // A range that is longer is read in pieces of this.
  std::uint64_t get_size_bytes = 8 * kMiB;
  std::size_t requests_in_flight_max = 64;  // of the store, each with a connection that is kept
  // How long one try of a request may take (no try begins once twice that has passed), and how long
  // it may pass fewer than the given bytes per second.
  std::chrono::milliseconds request_deadline = std::chrono::minutes(5);
  std::uint64_t low_speed_bytes_per_s = 1024;
  std::chrono::seconds low_speed_time = std::chrono::seconds(30);
  // How often a request is repeated that is safe to repeat, and the longest wait before the first
  // of them, which doubles up to 20 s; the wait itself is drawn by chance.
  int retries_max = 8;
  std::chrono::milliseconds retry_wait = std::chrono::milliseconds(200);
};

// A client of one bucket, with a thread of its own for all transfers. Does no request but those for
// credentials. After fork() every call in the child is an error. Errors: InvalidArgument (an
// option, a variable or a profile is wrong; no credentials were found), Io.
SEALPOINT_EXPORT Result<std::shared_ptr<ObjectStore>> S3Store(std::string_view bucket,
                                                              S3Options options = {});

// RegisterStorage("s3", …): from now on paths that begin with s3:// are those of ObjectStorage over
// S3Store(bucket, options), made at their first use. Thread safety: any.
SEALPOINT_EXPORT Status RegisterS3Storage(S3Options options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_S3_H_
