// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_S3_UPLOAD_H_
#define SEALPOINT_LIB_S3_S3_UPLOAD_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lib/s3/s3_client.h"
#include "sealpoint/object_store.h"

namespace sealpoint::internal::s3 {

// A multipart upload. Parts are sent as they are appended, as many simultaneously as the store
// allows requests.
class S3Upload final : public ObjectUpload {
 public:
  static Result<std::unique_ptr<ObjectUpload>> Begin(std::shared_ptr<S3Client> client,
                                                     const std::string& key);
  ~S3Upload() override;

  Status Append(ByteSpan part, std::function<void()> released) override;
  Status Complete() override;
  void Abort() override;

 private:
  S3Upload(std::shared_ptr<S3Client> client, std::string key, std::string id)
      : client_(std::move(client)), key_(std::move(key)), id_(std::move(id)) {}

  void OnPart(std::uint32_t number, std::uint64_t size, const Answer& answer);
  Status WaitForParts();
  // CompleteMultipartUpload. Its reply may be lost.
  Status SendComplete();
  // Checks whether the object exists despite an error, and has the expected length.
  Status LookForObject(Status error);

  const std::shared_ptr<S3Client> client_;
  const std::string key_;
  const std::string id_;
  bool is_over_ = false;  // this and part_count_ are the caller's
  std::uint32_t part_count_ = 0;
  std::mutex mutex_;
  std::condition_variable part_ended_;
  std::size_t under_way_ = 0;
  std::uint64_t size_bytes_ = 0;  // of the parts that arrived
  std::map<std::uint32_t, std::string> etags_;
  Status first_error_;
};

Status AbortS3Upload(S3Client& client, const std::string& key, const std::string& id);
Status PutS3Object(S3Client& client, const std::string& key, ByteSpan content);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_S3_UPLOAD_H_
