// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/answer.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "lib/base/errors.h"
#include "lib/s3/xml_reader.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::s3 {
namespace {

bool IsOneOf(std::string_view code, std::initializer_list<std::string_view> codes) {
  for (const std::string_view each : codes) {
    if (code == each) return true;
  }
  return false;
}

struct Advice {
  std::string_view code;  // as S3 spells it
  Code ours;
  std::string_view text;  // what to do
};

// Texts of docs/guides/object-stores.md.
constexpr std::array kAdvice = {
    Advice{"NoSuchBucket", Code::kIo,
           "check the bucket's name and the endpoint; Sealpoint does not create buckets"},
    Advice{"NoSuchKey", Code::kNotFound, ""},
    Advice{"PreconditionFailed", Code::kIo, "the object was replaced; open it again"},
    Advice{"InvalidRange", Code::kIncomplete, "the range exceeds the object"},
    Advice{"InvalidAccessKeyId", Code::kIo,
           "the server does not know this access key; check AWS_ACCESS_KEY_ID, the profile and the "
           "endpoint"},
    Advice{"SignatureDoesNotMatch", Code::kIo,
           "the secret key does not belong to the access key; check AWS_SECRET_ACCESS_KEY and the "
           "profile"},
    Advice{"ExpiredToken", Code::kIo,
           "renewed credentials are expired, too; log in again or renew them"},
    Advice{"KeyTooLongError", Code::kInvalidArgument,
           "keys have at most 1024 bytes; take a shorter path"},
    Advice{"SlowDown", Code::kIo,
           "the store limits the rate of requests; lower S3Options::requests_in_flight_max or ask "
           "for a higher limit"},
    Advice{"QuotaExceeded", Code::kNoSpace, "the quota of the bucket is used up"},
    Advice{"XMinioStorageFull", Code::kNoSpace, "the server is full"},
    Advice{"InsufficientStorage", Code::kNoSpace, "the server is full"},
    Advice{"NotImplemented", Code::kUnsupported, "the server does not offer this operation"},
    Advice{"EntityTooSmall", Code::kIo,
           "the server requires larger parts; raise "
           "S3Options::part_size_bytes"},
    Advice{"EntityTooLarge", Code::kIo, "the object is larger than the server allows"},
    Advice{"NoSuchUpload", Code::kIo,
           "the upload was aborted by another client or by a lifecycle rule of the bucket"},
};

std::string_view CodeOfStatus(int status) {
  switch (status) {
    case 404:
      return "NoSuchKey";
    case 412:
      return "PreconditionFailed";
    case 416:
      return "InvalidRange";
    case 429:
      return "SlowDown";
    case 501:
      return "NotImplemented";
    case 503:
      return "SlowDown";
    case 507:
      return "InsufficientStorage";
    default:
      return "";
  }
}

std::string RegionAdvice(const Settings& settings, const std::string& region) {
  if (region.empty()) {
    return "the bucket is in another region or at another endpoint; set AWS_REGION or "
           "AWS_ENDPOINT_URL_S3";
  }
  return StrCat("the bucket is in region ", region, ", asked was ", settings.options.region,
                "; set AWS_REGION=", region, " or S3Options::region");
}

std::string AdviceText(const Settings& settings, const Operation& operation, const HttpReply& reply,
                       const ErrorBody& error, Code& ours) {
  const bool is_elsewhere =
      (reply.status >= 300 && reply.status < 400) ||
      IsOneOf(error.code, {"AuthorizationHeaderMalformed", "PermanentRedirect",
                           "IllegalLocationConstraintException", "IncorrectEndpoint"}) ||
      (!error.region.empty() && error.region != settings.options.region && reply.status == 400);
  if (is_elsewhere) return RegionAdvice(settings, error.region);
  if (error.code == "RequestTimeTooSkewed") {
    return StrCat("the local clock shows ", error.request_time, ", the server's ",
                  error.server_time, "; set the clock");
  }
  const std::string_view code = error.code.empty() ? CodeOfStatus(reply.status) : error.code;
  for (const Advice& advice : kAdvice) {
    if (code != advice.code) continue;
    ours = advice.ours;
    return std::string(advice.text);
  }
  if (reply.status == 401 || reply.status == 403) {
    return StrCat("the credentials must allow ", operation.action,
                  " (a GET or HEAD of a missing object needs s3:ListBucket, too)");
  }
  return {};
}

}  // namespace

ErrorBody ReadErrorBody(const HttpReply& reply) {
  ErrorBody out;
  out.region = reply.header("x-amz-bucket-region");
  out.server_time = reply.header("date");
  if (reply.body.find("<Error") == std::string::npos) return out;
  // An answer that is cut off still says what stands before the cut.
  static_cast<void>(ReadXml(reply.body, [&out](std::string_view path, const std::string& text) {
    if (path == "Error/Code") out.code = text;
    if (path == "Error/Message") out.message = text;
    if (path == "Error/Region") out.region = text;
    if (path == "Error/RequestTime") out.request_time = text;
    if (path == "Error/ServerTime") out.server_time = text;
  }));
  return out;
}

Outcome OutcomeOf(const HttpReply& reply, const ErrorBody& error, bool has_session_token) {
  if (reply.transport == Transport::kNotSent) return Outcome::kNotDone;
  if (reply.transport == Transport::kHopeless) return Outcome::kRefused;
  if (reply.transport != Transport::kOk) return Outcome::kUnknown;
  if (IsOneOf(error.code, {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                           "RequestExpired"})) {
    return Outcome::kExpired;
  }
  if (IsOneOf(error.code, {"SlowDown", "ServiceUnavailable", "TooManyRequests", "RequestTimeout",
                           "ConditionalRequestConflict", "OperationAborted", "IncompleteBody"})) {
    return Outcome::kNotDone;
  }
  if (error.code == "InternalError") return Outcome::kUnknown;
  if (reply.is_good()) return error.code.empty() ? Outcome::kGood : Outcome::kRefused;
  // An answer to HEAD has no body that would say it.
  const bool is_mute = error.code.empty() && (reply.status == 400 || reply.status == 403);
  if (is_mute && has_session_token) return Outcome::kExpired;
  if (reply.status == 429) return Outcome::kNotDone;
  // What a proxy in front says of a server that may have done it.
  if (reply.status == 408 || (reply.status >= 500 && reply.status != 501 && reply.status != 507)) {
    return Outcome::kUnknown;
  }
  return Outcome::kRefused;
}

Status AnswerError(const Settings& settings, const Operation& operation, const std::string& key,
                   const HttpReply& reply, const ErrorBody& error) {
  const std::string path = StrCat("s3://", settings.bucket, key.empty() ? "" : "/", key);
  if (reply.transport != Transport::kOk) {
    return std::move(MakeError(Code::kIo, operation.name, " at ", settings.base_url, ": ",
                               reply.transport_error))
        .AtPath(path);
  }
  Code ours = Code::kIo;
  const std::string advice = AdviceText(settings, operation, reply, error, ours);
  std::string text = StrCat(operation.name, " answered ", reply.status);
  if (!error.code.empty()) text += StrCat(" ", error.code);
  if (!error.message.empty()) text += StrCat(" (", Printable(error.message), ")");
  if (!advice.empty()) text += StrCat("; ", advice);
  if (const std::string id = reply.header("x-amz-request-id"); !id.empty()) {
    text += StrCat(" [request ", Printable(id), "]");
  }
  return std::move(MakeError(ours, text)).AtPath(path);
}

}  // namespace sealpoint::internal::s3
