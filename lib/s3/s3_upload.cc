// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/s3_upload.h"

#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/s3/object_read.h"
#include "lib/s3/xml_reader.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr std::uint32_t kPartsMax = 10000;
constexpr std::size_t kCompleteAnswerMax = 1 * kMiB;

std::string PartList(const std::map<std::uint32_t, std::string>& etags) {
  std::string out = "<CompleteMultipartUpload>";
  for (const auto& [number, etag] : etags) {
    out += StrCat("<Part><PartNumber>", number, "</PartNumber><ETag>", XmlEscape(etag),
                  "</ETag></Part>");
  }
  return out += "</CompleteMultipartUpload>";
}

}  // namespace

Status AbortS3Upload(S3Client& client, const std::string& key, const std::string& id) {
  const Answer answer = client.Do({.operation = {"AbortMultipartUpload", "s3:AbortMultipartUpload"},
                                   .method = "DELETE",
                                   .key = key,
                                   .query = {{"uploadId", id}}});
  return answer.reply.status == 404 ? Status() : answer.status;
}

Status PutS3Object(S3Client& client, const std::string& key, ByteSpan content) {
  return client
      .Do({.operation = {"PutObject", "s3:PutObject"},
           .method = "PUT",
           .key = key,
           .body = content})
      .status;
}

Result<std::unique_ptr<ObjectUpload>> S3Upload::Begin(std::shared_ptr<S3Client> client,
                                                      const std::string& key) {
  // After a lost reply there may be a second upload, which the bucket's rule for unfinished ones,
  // or ListUploads, finds.
  Answer answer = client->Do({.operation = {"CreateMultipartUpload", "s3:PutObject"},
                              .method = "POST",
                              .key = key,
                              .query = {{"uploads", ""}},
                              .is_xml = true});
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  std::string id;
  Status parsed = ReadXml(answer.reply.body, [&id](std::string_view path, const std::string& text) {
    if (path == "InitiateMultipartUploadResult/UploadId") id = text;
  });
  if (parsed.ok() && id.empty()) {
    parsed =
        MakeError(Code::kIo, "CreateMultipartUpload answered without an UploadId, expected one");
  }
  if (!parsed.ok()) return std::move(parsed).AtPath(client->PathOf(key));
  return std::unique_ptr<ObjectUpload>(new S3Upload(std::move(client), key, std::move(id)));
}

S3Upload::~S3Upload() {
  if (!is_over_) Abort();
}

Status S3Upload::Append(ByteSpan part, std::function<void()> released) {
  {
    std::unique_lock lock(mutex_);
    const std::size_t max = client_->settings().options.requests_in_flight_max;
    part_ended_.wait(lock, [&] { return under_way_ < max || !first_error_.ok(); });
    if (first_error_.ok() && is_over_) {
      first_error_ = InvalidArgument("the upload has ended, expected no more parts");
    }
    if (first_error_.ok() && part_count_ == kPartsMax) {
      first_error_ =
          std::move(MakeError(Code::kLimitExceeded, "the object has more than ", kPartsMax,
                              " parts of ", client_->settings().options.part_size_bytes,
                              " bytes; raise S3Options::part_size_bytes or bound the "
                              "size of blobs"))
              .AtPath(client_->PathOf(key_));
    }
    if (!first_error_.ok()) {
      const Status error = first_error_;
      lock.unlock();
      released();
      return error;
    }
    ++under_way_;
  }
  const std::uint32_t number = ++part_count_;
  client_->Start(
      {.operation = {"UploadPart", "s3:PutObject"},
       .method = "PUT",
       .key = key_,
       .query = {{"partNumber", std::to_string(number)}, {"uploadId", id_}},
       .body = part},
      [this, number, size = part.size(), released = std::move(released)](const Answer& answer) {
        released();
        OnPart(number, size, answer);
      });
  return {};
}

void S3Upload::OnPart(std::uint32_t number, std::uint64_t size, const Answer& answer) {
  const std::scoped_lock lock(mutex_);
  const std::string etag = answer.reply.header("etag");
  if (!answer.status.ok()) {
    if (first_error_.ok()) first_error_ = answer.status;
  } else if (etag.empty() && first_error_.ok()) {
    first_error_ = std::move(MakeError(Code::kIo, "UploadPart of part ", number,
                                       " answered without an ETag, expected one"))
                       .AtPath(client_->PathOf(key_));
  } else {
    etags_[number] = etag;
    size_bytes_ += size;
  }
  --under_way_;
  // Under the lock: whoever waits may destroy this as soon as it is free.
  part_ended_.notify_all();
}

Status S3Upload::WaitForParts() {
  std::unique_lock lock(mutex_);
  part_ended_.wait(lock, [this] { return under_way_ == 0; });
  return first_error_;
}

Status S3Upload::Complete() {
  SEALPOINT_RETURN_IF_ERROR(WaitForParts());
  if (is_over_) return InvalidArgument("the upload has ended, expected one under way");
  if (part_count_ == 0) {  // no server completes an upload of nothing
    Abort();
    return PutS3Object(*client_, key_, {});
  }
  Status status = SendComplete();
  if (status.ok()) {
    is_over_ = true;
    return status;
  }
  const std::scoped_lock lock(mutex_);
  return first_error_ = status;
}

Status S3Upload::SendComplete() {
  const std::string body = PartList(etags_);
  Answer answer = client_->Do({.operation = {"CompleteMultipartUpload", "s3:PutObject"},
                               .method = "POST",
                               .key = key_,
                               .query = {{"uploadId", id_}},
                               .body = AsBytes(body),
                               .body_max = kCompleteAnswerMax,
                               .may_be_silent = true,
                               .is_xml = true});
  // After a lost reply the next try, which libcurl may make unseen, meets its own success.
  const bool is_gone = answer.error.code == "NoSuchUpload";
  if (is_gone || answer.outcome == Outcome::kUnknown)
    return LookForObject(std::move(answer.status));
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  std::string etag;
  Status parsed =
      ReadXml(answer.reply.body, [&etag](std::string_view path, const std::string& text) {
        if (path == "CompleteMultipartUploadResult/ETag") etag = text;
      });
  // An answer that was cut off, or is none, says nothing about the object.
  if (!parsed.ok() || etag.empty()) {
    if (parsed.ok()) {
      parsed =
          MakeError(Code::kIo, "CompleteMultipartUpload answered without an ETag, expected one");
    }
    return LookForObject(std::move(parsed).AtPath(client_->PathOf(key_)));
  }
  return answer.status;
}

Status S3Upload::LookForObject(Status error) {
  const auto head = HeadS3Object(*client_, key_);
  if (head.ok() && head->size_bytes == size_bytes_) return {};
  return error;
}

void S3Upload::Abort() {
  static_cast<void>(WaitForParts());
  if (std::exchange(is_over_, true)) return;
  static_cast<void>(AbortS3Upload(*client_, key_, id_));
}

}  // namespace sealpoint::internal::s3
