// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_OBJECT_WRITABLE_FILE_H_
#define SEALPOINT_LIB_STORAGE_OBJECT_WRITABLE_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lib/storage/part_buffers.h"
#include "sealpoint/object_store.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// An object that is being written. WriteAt fills the buffers of parts, at any offset and from
// several threads; complete parts are passed to an upload strictly in order. An object smaller than
// a part is put in one request. It has no holes, and no byte is written twice. The object does not
// exist before Sync or Close completes it; nothing can be written after that.
class ObjectWritableFile final : public WritableFile {
 public:
  enum class OnTaken : std::uint8_t { kReplace, kRefuse };
  // With kRefuse a small object is put only if the key is free, else AlreadyExists.
  ObjectWritableFile(std::shared_ptr<ObjectStore> store, std::shared_ptr<PartBuffers> buffers,
                     std::string key, OnTaken on_taken);
  ~ObjectWritableFile() override;  // aborts an incomplete upload

  Status WriteAt(std::uint64_t offset, ByteSpan data) override;
  Status Preallocate(std::uint64_t size_bytes) override;
  Status Sync() override;
  Status Close() override;
  bool is_direct() const override { return false; }
  void ChargePartsTo(PartBudget& memory) override { memory_ = &memory; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Part {
    PartBuffer buffer;
    std::uint64_t filled = 0;   // bytes
    std::uint64_t writers = 0;  // threads that copy into it
  };
  // All of these hold the lock when they are called and when they return.
  Result<Part*> FindPart(std::uint64_t index, Lock& lock);
  // True if the file's own buffer is in use, for the next part to send.
  bool uses_own() const { return under_way_ > 0 || parts_.contains(next_); }
  void GiveBack(PartBuffer buffer);
  // Charges all held buffers except the file's own.
  void DischargeSpare();
  void SendWholeParts(Lock& lock);
  Status SendPart(PartBuffer buffer, std::uint64_t size, Lock& lock);
  Status Complete(Lock& lock);
  // Remembers the first error.
  Status Fail(Status status);
  Status CheckUsable() const;

  const std::shared_ptr<ObjectStore> store_;
  const std::shared_ptr<PartBuffers> buffers_;
  const std::string key_;
  const OnTaken on_taken_;
  // Under the lock of `buffers_`:
  std::map<std::uint64_t, Part> parts_;  // not handed over yet, by number
  std::uint64_t next_ = 0;               // the first that was not handed over
  std::uint64_t under_way_ = 0;          // handed over and not released
  std::uint64_t charged_ = 0;            // buffers beyond the file's own
  PartBudget* memory_ = nullptr;         // budget that buffers are charged to
  std::uint64_t size_ = 0;
  bool is_sending_ = false;  // one thread hands parts over
  bool is_complete_ = false;
  bool is_closed_ = false;
  Status error_;
  std::unique_ptr<ObjectUpload> upload_;  // used by the thread that set is_sending_
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_OBJECT_WRITABLE_FILE_H_
