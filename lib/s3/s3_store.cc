// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/s3/listing.h"
#include "lib/s3/object_read.h"
#include "lib/s3/s3_client.h"
#include "lib/s3/s3_upload.h"
#include "lib/s3/sigv4.h"
#include "lib/s3/xml_reader.h"
#include "sealpoint/s3.h"

namespace sealpoint {
namespace internal::s3 {
namespace {

constexpr std::size_t kKeysPerRequest = 1000;
constexpr std::size_t kKeySizeMax = 1024;
constexpr std::uint64_t kCopySizeMax = 5 * kGiB;  // in one request

class S3ObjectStore final : public ObjectStore {
 public:
  explicit S3ObjectStore(std::shared_ptr<S3Client> client)
      : client_(std::move(client)), uri_(client_->PathOf("")) {}

  const std::string& uri() const override { return uri_; }
  std::uint64_t part_size_bytes() const override {
    return client_->settings().options.part_size_bytes;
  }

  Status Put(const std::string& key, ByteSpan content) override {
    SEALPOINT_RETURN_IF_ERROR(CheckKey(key));
    return PutS3Object(*client_, key, content);
  }
  Status PutIfAbsent(const std::string& key, ByteSpan content) override;
  Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) override {
    SEALPOINT_RETURN_IF_ERROR(CheckKey(key));
    return S3Upload::Begin(client_, key);
  }

  Result<std::string> Copy(const StoredObject& from, const std::string& to) override;
  Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                Bytes& out) const override {
    return GetFirstOfS3Object(*client_, key, size_max, out);
  }
  Status GetRanges(const StoredObject& object, std::span<const ObjectRange> ranges) const override {
    return GetS3Ranges(*client_, object, ranges);
  }
  Result<StoredObject> Head(const std::string& key) const override {
    return HeadS3Object(*client_, key);
  }
  Result<ObjectPage> List(const std::string& prefix, const std::string& next) const override;

  Status Delete(std::span<const std::string> keys) override;
  Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const override;
  Status AbortUpload(const UnfinishedUpload& upload) override {
    return AbortS3Upload(*client_, upload.key, upload.upload_id);
  }

 private:
  Status CheckKey(const std::string& key) const {
    if (!key.empty() && key.size() <= kKeySizeMax) return {};
    return std::move(InvalidArgument("the key has ", key.size(), " bytes, expected 1 to ",
                                     kKeySizeMax, "; take a shorter path"))
        .AtPath(client_->PathOf(key));
  }
  Status DeleteBatch(std::span<const std::string> keys);

  const std::shared_ptr<S3Client> client_;
  const std::string uri_;
};

Status S3ObjectStore::PutIfAbsent(const std::string& key, ByteSpan content) {
  SEALPOINT_RETURN_IF_ERROR(CheckKey(key));
  Answer answer = client_->Do({.operation = {"PutObject", "s3:PutObject"},
                               .method = "PUT",
                               .key = key,
                               .headers = {{"if-none-match", "*"}},
                               .body = content,
                               .is_repeatable = false});
  if (answer.reply.status == 412) {
    return std::move(MakeError(Code::kAlreadyExists, "the key exists already"))
        .AtPath(client_->PathOf(key));
  }
  if (answer.error.code == "NotImplemented" || answer.reply.status == 501) {
    return std::move(MakeError(Code::kUnsupported,
                               "PutObject with If-None-Match answered NotImplemented, expected a "
                               "store with conditional writes"))
        .AtPath(client_->PathOf(key));
  }
  return answer.status;
}

Result<std::string> S3ObjectStore::Copy(const StoredObject& from, const std::string& to) {
  SEALPOINT_RETURN_IF_ERROR(CheckKey(to));
  if (from.size_bytes > kCopySizeMax) {
    return std::move(MakeError(Code::kUnsupported, "CopyObject of ", from.size_bytes,
                               " bytes, at most ", kCopySizeMax))
        .AtPath(client_->PathOf(from.key));
  }
  const std::string source = StrCat("/", client_->settings().bucket, "/", from.key);
  Call call{.operation = {"CopyObject", "s3:GetObject and s3:PutObject"},
            .method = "PUT",
            .key = to,
            .headers = {{"x-amz-copy-source", PercentEncode(source, /*keep_slash=*/true)}},
            .may_be_silent = true,
            .is_xml = true};
  if (!from.etag.empty()) call.headers.emplace("x-amz-copy-source-if-match", from.etag);
  const Answer answer = client_->Do(std::move(call));
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  std::string etag;
  bool is_copy = false;
  Status parsed = ReadXml(answer.reply.body, [&](std::string_view path, const std::string& text) {
    is_copy = is_copy || path.starts_with("CopyObjectResult");
    if (path == "CopyObjectResult/ETag") etag = text;
  });
  // A server that does not know the header takes the request for a put of nothing.
  if (parsed.ok() && !is_copy) {
    parsed = MakeError(Code::kIo, "CopyObject answered without a CopyObjectResult, expected one");
  }
  if (!parsed.ok()) return std::move(parsed).AtPath(client_->PathOf(to));
  return etag;
}

Result<ObjectPage> S3ObjectStore::List(const std::string& prefix, const std::string& next) const {
  Call call{.operation = {"ListObjectsV2", "s3:ListBucket"},
            .method = "GET",
            .query = {{"list-type", "2"},
                      {"delimiter", "/"},
                      {"encoding-type", "url"},
                      {"max-keys", std::to_string(kKeysPerRequest)},
                      {"prefix", prefix}},
            .body_max = kListingSizeMax,
            .is_xml = true};
  if (!next.empty()) call.query.emplace_back("continuation-token", next);
  const Answer answer = client_->Do(std::move(call));
  if (answer.status.code() == Code::kNotFound) return Status(Code::kIo, answer.status.message());
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  auto page = ParseObjectPage(answer.reply.body);
  if (!page.ok()) return std::move(page).error().AtPath(client_->PathOf(prefix));
  return page;
}

Status S3ObjectStore::Delete(std::span<const std::string> keys) {
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysPerRequest) {
    const auto batch = keys.subspan(begin, std::min(kKeysPerRequest, keys.size() - begin));
    if (batch.size() > 1) {
      SEALPOINT_RETURN_IF_ERROR(DeleteBatch(batch));
      continue;
    }
    const Answer answer = client_->Do({.operation = {"DeleteObject", "s3:DeleteObject"},
                                       .method = "DELETE",
                                       .key = batch.front()});
    if (answer.status.code() != Code::kNotFound) SEALPOINT_RETURN_IF_ERROR(answer.status);
  }
  return {};
}

Status S3ObjectStore::DeleteBatch(std::span<const std::string> keys) {
  std::string body = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    body += StrCat("<Object><Key>", XmlEscape(key), "</Key></Object>");
  }
  body += "</Delete>";
  // The protocol wants this one request to have a checksum.
  const Answer answer = client_->Do({.operation = {"DeleteObjects", "s3:DeleteObject"},
                                     .method = "POST",
                                     .query = {{"delete", ""}},
                                     .headers = {{"content-md5", Md5Base64(AsBytes(body))}},
                                     .body = AsBytes(body),
                                     .body_max = kListingSizeMax,
                                     .is_xml = true});
  SEALPOINT_RETURN_IF_ERROR(answer.status);
  return ParseDeleteAnswer(answer.reply.body).AtPath(client_->PathOf(keys.front()));
}

Result<std::vector<UnfinishedUpload>> S3ObjectStore::ListUploads(const std::string& prefix) const {
  std::vector<UnfinishedUpload> out;
  UploadPage page;
  do {
    Call call{.operation = {"ListMultipartUploads", "s3:ListBucketMultipartUploads"},
              .method = "GET",
              .query = {{"uploads", ""}, {"prefix", prefix}},
              .body_max = kListingSizeMax,
              .is_xml = true};
    if (!page.next_key.empty()) {
      call.query.emplace_back("key-marker", page.next_key);
      call.query.emplace_back("upload-id-marker", page.next_id);
    }
    const Answer answer = client_->Do(std::move(call));
    SEALPOINT_RETURN_IF_ERROR(answer.status);
    auto next = ParseUploadPage(answer.reply.body);
    if (!next.ok()) return std::move(next).error().AtPath(client_->PathOf(prefix));
    const bool is_stuck =
        !next->next_key.empty() && next->next_key == page.next_key && next->next_id == page.next_id;
    if (is_stuck) {
      return std::move(MakeError(Code::kIo, "ListMultipartUploads returned the same marker twice"))
          .AtPath(client_->PathOf(prefix));
    }
    page = *std::move(next);
    out.insert(out.end(), page.uploads.begin(), page.uploads.end());
  } while (!page.next_key.empty());
  return out;
}

}  // namespace
}  // namespace internal::s3

Result<std::shared_ptr<ObjectStore>> S3Store(std::string_view bucket, S3Options options) {
  SEALPOINT_ASSIGN_OR_RETURN(auto settings, internal::s3::MakeSettings(bucket, std::move(options)));
  SEALPOINT_ASSIGN_OR_RETURN(auto client, internal::s3::S3Client::Create(std::move(settings)));
  return std::shared_ptr<ObjectStore>(
      std::make_shared<internal::s3::S3ObjectStore>(std::move(client)));
}

}  // namespace sealpoint
