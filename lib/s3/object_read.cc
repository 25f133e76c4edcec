// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/object_read.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr Operation kGetObject = {"GetObject", "s3:GetObject"};

std::string RangeText(std::uint64_t offset, std::uint64_t size) {
  return StrCat("bytes=", offset, "-", offset + size - 1);
}

// The pieces of one call of GetRanges that are under way.
class RangeBatch {
 public:
  explicit RangeBatch(S3Client& client, const StoredObject& object)
      : client_(client), object_(object) {}

  void Start(const ObjectRange& piece) {
    {
      std::unique_lock lock(mutex_);
      const std::size_t max = client_.settings().options.requests_in_flight_max;
      ended_.wait(lock, [&] { return under_way_ < max; });
      if (!first_error_.ok()) return;
      ++under_way_;
    }
    Call call{.operation = kGetObject,
              .method = "GET",
              .key = object_.key,
              .headers = {{"range", RangeText(piece.offset, piece.out.size())}},
              .sink = piece.out};
    if (!object_.etag.empty()) call.headers["if-match"] = object_.etag;
    client_.Start(std::move(call), [this, piece](const Answer& answer) {
      Status status = Check(piece, answer);
      const std::scoped_lock lock(mutex_);
      if (first_error_.ok() && !status.ok()) {
        first_error_ = std::move(status).AtPath(client_.PathOf(object_.key)).AtOffset(piece.offset);
      }
      --under_way_;
      // Under the lock: whoever waits destroys this as soon as it is free.
      ended_.notify_all();
    });
  }

  Status Wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return under_way_ == 0; });
    return first_error_;
  }

 private:
  Status Check(const ObjectRange& piece, const Answer& answer) const {
    const HttpReply& reply = answer.reply;
    const std::uint64_t size = piece.out.size();
    SEALPOINT_RETURN_IF_ERROR(answer.status);
    if (reply.status == 200 && piece.offset == 0 && reply.sink_bytes == size &&
        !reply.passed_sink) {
      return {};  // the whole object was asked for
    }
    if (reply.status != 206) {
      return MakeError(Code::kUnsupported, "GetObject of ", size, " bytes at ", piece.offset,
                       " answered ", reply.status, ", expected 206: the server ignores ranges");
    }
    const ContentRange range =
        ParseContentRange(reply.header("content-range")).value_or(ContentRange());
    if (range.first != piece.offset) {
      return MakeError(Code::kIo, "GetObject answered Content-Range \"",
                       reply.header("content-range"), "\", expected bytes from ", piece.offset);
    }
    if (range.total && object_.etag.empty() && *range.total != object_.size_bytes) {
      return MakeError(Code::kIo, "the object has ", *range.total, " bytes now, expected ",
                       object_.size_bytes, "; open it again");
    }
    if (*range.last < piece.offset + size - 1) {
      return MakeError(Code::kIncomplete, "the object ends at ", *range.last + 1, ", expected ",
                       piece.offset + size, " bytes or more");
    }
    if (reply.sink_bytes != size || reply.passed_sink) {
      return MakeError(Code::kIo, "GetObject answered ", reply.sink_bytes,
                       reply.passed_sink ? " bytes and more" : " bytes", ", expected ", size);
    }
    return {};
  }

  S3Client& client_;
  const StoredObject& object_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t under_way_ = 0;
  Status first_error_;
};

}  // namespace

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view bounds = text.substr(0, slash);
  ContentRange out{.total = ParseNumber(text.substr(slash + 1))};
  if (bounds == "*") return out;
  const std::size_t dash = bounds.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  out.first = ParseNumber(bounds.substr(0, dash));
  out.last = ParseNumber(bounds.substr(dash + 1));
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t last = out.last.value_or(kNone);
  if (out.first.value_or(kNone) > last || last == kNone) return std::nullopt;
  return out;
}

Result<StoredObject> HeadS3Object(S3Client& client, const std::string& key) {
  const Answer answer =
      client.Do({.operation = {"HeadObject", "s3:GetObject"}, .method = "HEAD", .key = key});
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  const auto size = ParseNumber(answer.reply.header("content-length"));
  if (!size) {
    return std::move(MakeError(Code::kIo, "HeadObject answered Content-Length \"",
                               answer.reply.header("content-length"), "\", expected a number"))
        .AtPath(client.PathOf(key));
  }
  return StoredObject{.key = key, .size_bytes = *size, .etag = answer.reply.header("etag")};
}

Result<StoredObject> GetFirstOfS3Object(S3Client& client, const std::string& key,
                                        std::size_t size_max, Bytes& out) {
  out.clear();
  Call call{.operation = kGetObject, .method = "GET", .key = key, .body_max = size_max};
  if (size_max == 0) return HeadS3Object(client, key);
  if (size_max != std::numeric_limits<std::size_t>::max()) {
    call.headers["range"] = RangeText(0, size_max);
  }
  const Answer answer = client.Do(std::move(call));
  const HttpReply& reply = answer.reply;
  const auto range = ParseContentRange(reply.header("content-range"));
  StoredObject info{.key = key, .etag = reply.header("etag")};
  // No range lies in an object of no bytes.
  if (reply.status == 416 && range && range->total == 0U) return info;
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  const auto length = ParseNumber(reply.header("content-length"));
  const auto total = reply.status == 206 && range ? range->total : length;
  const std::uint64_t expected = std::min<std::uint64_t>(size_max, total.value_or(0));
  const bool begins_at_0 = reply.status == 200 || (range && range->first == 0U);
  if (!total || !begins_at_0 || reply.body.size() != expected) {
    return std::move(MakeError(Code::kIo, "GetObject answered ", reply.status, " with ",
                               reply.body.size(), " bytes, Content-Length \"",
                               reply.header("content-length"), "\" and Content-Range \"",
                               reply.header("content-range"), "\", expected the first ", size_max,
                               " bytes"))
        .AtPath(client.PathOf(key));
  }
  info.size_bytes = *total;
  const ByteSpan bytes = AsBytes(reply.body);
  out.assign(bytes.begin(), bytes.end());
  return info;
}

Status GetS3Ranges(S3Client& client, const StoredObject& object,
                   std::span<const ObjectRange> ranges) {
  const std::uint64_t piece_size = client.settings().options.get_size_bytes;
  RangeBatch batch(client, object);
  for (const ObjectRange& range : ranges) {
    for (std::uint64_t begin = 0; begin < range.out.size(); begin += piece_size) {
      const std::uint64_t size = std::min<std::uint64_t>(piece_size, range.out.size() - begin);
      batch.Start({.offset = range.offset + begin,
                   .out = range.out.subspan(static_cast<std::size_t>(begin),
                                            static_cast<std::size_t>(size))});
    }
  }
  return batch.Wait();
}

}  // namespace sealpoint::internal::s3
