// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/listing.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/s3/credentials.h"
#include "lib/s3/object_read.h"
#include "lib/s3/sigv4.h"
#include "lib/s3/xml_reader.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::s3 {
namespace {

void Decode(std::string& key) { key = PercentDecode(key); }

}  // namespace

Result<ObjectPage> ParseObjectPage(std::string_view xml) {
  ObjectPage page;
  StoredObject object;
  std::string size;
  std::string bad_size;
  bool is_encoded = false;
  bool is_truncated = false;
  bool is_listing = false;
  SEALPOINT_RETURN_IF_ERROR(ReadXml(xml, [&](std::string_view path, const std::string& text) {
    if (path == "ListBucketResult") is_listing = true;
    if (path == "ListBucketResult/Contents/Key") object.key = text;
    if (path == "ListBucketResult/Contents/ETag") object.etag = text;
    if (path == "ListBucketResult/Contents/Size") size = text;
    if (path == "ListBucketResult/Contents") {
      const auto number = ParseNumber(size);
      if (!number) bad_size = size.empty() ? "nothing" : size;
      object.size_bytes = number.value_or(0);
      page.objects.push_back(std::exchange(object, {}));
      size.clear();
    }
    if (path == "ListBucketResult/CommonPrefixes/Prefix") page.prefixes.push_back(text);
    if (path == "ListBucketResult/EncodingType") is_encoded = text == "url";
    if (path == "ListBucketResult/IsTruncated") is_truncated = text == "true";
    if (path == "ListBucketResult/NextContinuationToken") page.next = text;
  }));
  if (!is_listing) {
    return MakeError(Code::kIo, "ListObjectsV2 answered ", xml.size(),
                     " bytes without ListBucketResult, expected one");
  }
  if (!bad_size.empty()) {
    return MakeError(Code::kIo, "ListObjectsV2 gives the size \"", Printable(bad_size),
                     "\", expected a number");
  }
  if (is_truncated && page.next.empty()) {
    return MakeError(Code::kIo, "ListObjectsV2 answered IsTruncated without NextContinuationToken");
  }
  if (!is_truncated) page.next.clear();
  if (is_encoded) {
    for (StoredObject& each : page.objects) Decode(each.key);
    for (std::string& each : page.prefixes) Decode(each);
  }
  std::ranges::sort(page.objects, {}, &StoredObject::key);
  std::ranges::sort(page.prefixes);
  return page;
}

Result<UploadPage> ParseUploadPage(std::string_view xml) {
  UploadPage page;
  UnfinishedUpload upload;
  bool is_encoded = false;
  bool is_truncated = false;
  bool is_listing = false;
  SEALPOINT_RETURN_IF_ERROR(ReadXml(xml, [&](std::string_view path, const std::string& text) {
    if (path == "ListMultipartUploadsResult") is_listing = true;
    if (path == "ListMultipartUploadsResult/Upload/Key") upload.key = text;
    if (path == "ListMultipartUploadsResult/Upload/UploadId") upload.upload_id = text;
    if (path == "ListMultipartUploadsResult/Upload/Initiated") {
      const auto begun = ParseTime(text);
      if (begun)
        upload.begun_unix_s = static_cast<std::uint64_t>(begun->time_since_epoch().count());
    }
    if (path == "ListMultipartUploadsResult/Upload") {
      page.uploads.push_back(std::exchange(upload, {}));
    }
    if (path == "ListMultipartUploadsResult/EncodingType") is_encoded = text == "url";
    if (path == "ListMultipartUploadsResult/IsTruncated") is_truncated = text == "true";
    if (path == "ListMultipartUploadsResult/NextKeyMarker") page.next_key = text;
    if (path == "ListMultipartUploadsResult/NextUploadIdMarker") page.next_id = text;
  }));
  if (!is_listing || (is_truncated && page.next_key.empty())) {
    return MakeError(Code::kIo, "ListMultipartUploads answered ", xml.size(),
                     " bytes, expected a list with NextKeyMarker if there is more");
  }
  if (!is_truncated) page.next_key = page.next_id = {};
  if (is_encoded) {
    for (UnfinishedUpload& each : page.uploads) Decode(each.key);
    Decode(page.next_key);
  }
  return page;
}

Status ParseDeleteAnswer(std::string_view xml) {
  std::string key;
  std::string code;
  std::string message;
  Status first;
  bool is_answer = false;
  SEALPOINT_RETURN_IF_ERROR(ReadXml(xml, [&](std::string_view path, const std::string& text) {
    if (path == "DeleteResult") is_answer = true;
    if (path == "DeleteResult/Error/Key") key = text;
    if (path == "DeleteResult/Error/Code") code = text;
    if (path == "DeleteResult/Error/Message") message = text;
    if (path != "DeleteResult/Error") return;
    if (first.ok() && code != "NoSuchKey") {
      first = MakeError(
          Code::kIo, "DeleteObjects left ", Printable(key), ": ", Printable(code), " (",
          Printable(message),
          "); the credentials must allow s3:DeleteObject, and the object must not be locked");
    }
    code.clear();
  }));
  if (!is_answer) {
    return MakeError(Code::kIo, "DeleteObjects answered ", xml.size(),
                     " bytes without DeleteResult, expected one");
  }
  return first;
}

}  // namespace sealpoint::internal::s3
