// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/s3_client.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr std::chrono::milliseconds kWaitMax = std::chrono::seconds(20);
// Up to this size a body is hashed for the signature where TLS does not protect it.
constexpr std::size_t kSignedBodyMax = 1 * kMiB;
// After so many times the deadline of one try no other one begins: an answer that trickles, as slow
// as each try may be, ends.
constexpr int kDeadlinesMax = 2;

}  // namespace

struct S3Client::Attempt {
  Call call{};
  std::function<void(Answer)> done{};
  S3Credentials credentials{};  // of the last try
  int tries = 0;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  bool is_expired = false;  // the server said so of `credentials`
  bool was_renewed = false;
};

Result<std::shared_ptr<S3Client>> S3Client::Create(Settings settings) {
  SEALPOINT_ASSIGN_OR_RETURN(auto http, HttpClient::Create(settings.http));
  CredentialsProvider provider = settings.options.credentials;
  if (!provider) provider = DefaultCredentials(settings);
  std::shared_ptr<S3Client> client(
      new S3Client(std::move(settings), std::move(provider), std::move(http)));
  // Now, and not in the middle of a save.
  SEALPOINT_RETURN_IF_ERROR(client->credentials_.Get().status());
  return client;
}

std::string S3Client::PathOf(const std::string& key) const {
  return StrCat("s3://", settings_.bucket, key.empty() ? "" : "/", key);
}

void S3Client::Start(Call call, std::function<void(Answer)> done) {
  Try(std::make_unique<Attempt>(Attempt{.call = std::move(call), .done = std::move(done)}));
}

Answer S3Client::Do(Call call) {
  std::promise<Answer> promise;
  Start(std::move(call), [&promise](Answer answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

HttpRequest S3Client::Signed(const Call& call, const S3Credentials& credentials) const {
  const bool is_hashed =
      call.body.empty() || (!settings_.is_tls && call.body.size() <= kSignedBodyMax);
  SignedRequest signed_request{
      .method = call.method,
      .path = StrCat(settings_.base_path, "/", PercentEncode(call.key, true)),
      .query = QueryText(call.query),
      .headers = call.headers,
      .payload_hash = is_hashed ? Sha256Hex(call.body) : std::string(kUnsignedPayload)};
  if (call.key.empty() && !settings_.base_path.empty()) signed_request.path.pop_back();
  signed_request.headers["host"] = settings_.host;
  const auto now = std::chrono::system_clock::now();
  Sign(credentials,
       {.region = settings_.options.region,
        .now = std::chrono::time_point_cast<std::chrono::seconds>(now)},
       signed_request);
  return {.method = call.method,
          .url = StrCat(settings_.base_url, signed_request.path, call.query.empty() ? "" : "?",
                        signed_request.query),
          .headers = std::move(signed_request.headers),
          .body = call.body,
          .sink = call.sink,
          .body_max = call.body_max,
          .is_head = call.method == "HEAD",
          .sent_once = !call.is_repeatable,
          .may_be_silent = call.may_be_silent};
}

void S3Client::Try(std::unique_ptr<Attempt> attempt) {
  auto credentials =
      credentials_.Get(std::exchange(attempt->is_expired, false) ? &attempt->credentials : nullptr);
  if (!credentials.ok()) {
    Answer answer{.status = std::move(credentials).error().AtPath(PathOf(attempt->call.key)),
                  .outcome = Outcome::kRefused};
    return attempt->done(std::move(answer));
  }
  attempt->credentials = *std::move(credentials);
  ++attempt->tries;
  HttpRequest request = Signed(attempt->call, attempt->credentials);
  // A function that can be copied holds what cannot.
  auto held = std::make_shared<std::unique_ptr<Attempt>>(std::move(attempt));
  http_->Start(std::move(request),
               [this, held](HttpReply reply) { Judge(std::move(*held), std::move(reply)); });
}

void S3Client::Judge(std::unique_ptr<Attempt> attempt, HttpReply reply) {
  Answer answer;
  if (!reply.is_good() || attempt->call.is_xml) answer.error = ReadErrorBody(reply);
  answer.outcome = OutcomeOf(reply, answer.error, !attempt->credentials.session_token.empty());
  bool is_again = false;
  auto wait = Wait(attempt->tries);
  if (answer.outcome == Outcome::kExpired && !attempt->was_renewed) {
    attempt->is_expired = attempt->was_renewed = is_again = true;
    wait = std::chrono::milliseconds(0);
  } else if (attempt->tries <= settings_.options.retries_max &&
             std::chrono::steady_clock::now() - attempt->began <
                 kDeadlinesMax * settings_.options.request_deadline) {
    is_again = answer.outcome == Outcome::kNotDone ||
               (answer.outcome == Outcome::kUnknown && attempt->call.is_repeatable);
  }
  if (is_again) {
    auto held = std::make_shared<std::unique_ptr<Attempt>>(std::move(attempt));
    // Not on this thread: credentials may have to be fetched.
    return retries_.After(wait, [this, held] { Try(std::move(*held)); });
  }
  if (answer.outcome != Outcome::kGood) {
    answer.status =
        AnswerError(settings_, attempt->call.operation, attempt->call.key, reply, answer.error);
    if (attempt->tries > 1) {
      static_cast<void>(
          std::move(answer.status).Prefixed(StrCat("after ", attempt->tries, " tries")));
    }
    // Whether one that may be repeated took effect is nobody's doubt: a key that is written again,
    // or given up, commits nothing.
    if (answer.outcome == Outcome::kUnknown && !attempt->call.is_repeatable) {
      static_cast<void>(std::move(answer.status).WithUnknownOutcome());
    }
  }
  answer.reply = std::move(reply);
  attempt->done(std::move(answer));
}

// Drawn from nought to a bound that doubles, so that many ranks do not come back at once.
std::chrono::milliseconds S3Client::Wait(int tries) {
  const auto first = settings_.options.retry_wait.count();
  const auto bound = std::min<std::int64_t>(kWaitMax.count(), first << std::min(tries - 1, 20));
  const std::scoped_lock lock(random_mutex_);
  return std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, bound)(random_));
}

}  // namespace sealpoint::internal::s3
