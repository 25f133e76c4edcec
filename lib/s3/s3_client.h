// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_S3_CLIENT_H_
#define SEALPOINT_LIB_S3_S3_CLIENT_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "lib/s3/answer.h"
#include "lib/s3/credentials.h"
#include "lib/s3/http_client.h"
#include "lib/s3/retry_queue.h"
#include "lib/s3/settings.h"
#include "lib/s3/sigv4.h"

namespace sealpoint::internal::s3 {

struct Call {
  Operation operation{};
  std::string method{};
  std::string key{};  // empty: the bucket itself
  Query query{};
  std::map<std::string, std::string> headers{};
  ByteSpan body{};  // this and `sink` must remain unchanged until `done`
  MutableByteSpan sink{};
  std::size_t body_max = 64 * kKiB;
  bool is_repeatable = true;  // false: repeat only if the server certainly did nothing
  bool may_be_silent = false;
  bool is_xml = false;  // an answer 200 may hold an error
};

struct Answer {
  Status status{};  // reason of a missing or failed reply
  HttpReply reply{};
  ErrorBody error{};
  Outcome outcome = Outcome::kGood;
};

// Signed requests to one bucket, retried if that is safe. Calls must complete before this object is
// destroyed. Thread safety: all functions.
class S3Client {
 public:
  static Result<std::shared_ptr<S3Client>> Create(Settings settings);

  const Settings& settings() const { return settings_; }

  // `done` runs once, on any thread, and must not wait for another call.
  void Start(Call call, std::function<void(Answer)> done);
  Answer Do(Call call);
  // For errors detected after a successful response.
  std::string PathOf(const std::string& key) const;

 private:
  struct Attempt;
  S3Client(Settings settings, CredentialsProvider provider, std::unique_ptr<HttpClient> http)
      : settings_(std::move(settings)), credentials_(std::move(provider)), http_(std::move(http)) {}

  void Try(std::unique_ptr<Attempt> attempt);
  HttpRequest Signed(const Call& call, const S3Credentials& credentials) const;
  void Judge(std::unique_ptr<Attempt> attempt, HttpReply reply);
  std::chrono::milliseconds Wait(int tries);

  const Settings settings_;
  CredentialsCache credentials_;
  std::mutex random_mutex_;
  std::minstd_rand random_{std::random_device{}()};
  // Declared after the members that its threads use.
  std::unique_ptr<HttpClient> http_;
  RetryQueue retries_;
};

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_S3_CLIENT_H_
