// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_ANSWER_H_
#define SEALPOINT_LIB_S3_ANSWER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/s3/http_client.h"
#include "lib/s3/settings.h"
#include "sealpoint/status.h"

// Interpretation of server responses: whether to retry, and advice for people.

namespace sealpoint::internal::s3 {

struct Operation {
  std::string_view name{};    // "PutObject"
  std::string_view action{};  // of IAM, "s3:PutObject"
};

// The <Error> of an answer; empty if it has none.
struct ErrorBody {
  std::string code{};
  std::string message{};
  std::string region{};  // of the bucket, if the response contains it
  std::string request_time{};
  std::string server_time{};
};
ErrorBody ReadErrorBody(const HttpReply& reply);

enum class Outcome : std::uint8_t {
  kGood,
  kRefused,  // for good
  kNotDone,  // had no effect; the next try may succeed
  kUnknown,  // may have had its effect; the next try may succeed
  kExpired,  // had no effect; other credentials may do
};
// `error` is the result of ReadErrorBody, also for a response 200 with an error body.
Outcome OutcomeOf(const HttpReply& reply, const ErrorBody& error, bool has_session_token);

// For outcomes other than kGood: request, response and advice.
Status AnswerError(const Settings& settings, const Operation& operation, const std::string& key,
                   const HttpReply& reply, const ErrorBody& error);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_ANSWER_H_
