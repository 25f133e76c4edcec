// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_MEMORY_OBJECT_STORE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_MEMORY_OBJECT_STORE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sealpoint/object_store.h"

namespace sealpoint::testing {

enum class Request : std::uint8_t {
  kPut,
  kPutIfAbsent,
  kStartUpload,
  kPart,
  kComplete,
  kGet,
  kHead,
  kList,
  kDelete,
  kListUploads,
  kAbortUpload,
  kCopy,
};
inline constexpr std::size_t kRequestKinds = 12;

enum class Trouble : std::uint8_t {
  kRefused,    // an error, and no effect: 403, 409, 503
  kLostReply,  // an error behind the effect
  kDelayed,    // an error, and the effect comes some requests later
  kDead,       // an error of this and of all that follow, as if this process had died
};
inline constexpr Trouble kTroubles[] = {Trouble::kRefused, Trouble::kLostReply, Trouble::kDelayed,
                                        Trouble::kDead};

// An object store in memory, which counts requests and can have trouble with one of them.
// Thread safety: all functions; the fields are set before it is shared.
class MemoryObjectStore final : public ObjectStore {
 public:
  explicit MemoryObjectStore(std::string uri = "mem://bucket") : uri_(std::move(uri)) {}

  std::uint64_t part_size = 64 * kKiB;
  std::size_t page_size = 1000;    // keys and prefixes
  bool ignores_condition = false;  // as rclone and JuiceFS do
  bool has_condition = true;       // else it says that it has none
  bool sends_behind = false;       // parts are sent slowly, by a thread of each upload
  std::uint64_t delay = 1;         // requests after which a delayed effect comes
  bool gives_etags = true;
  std::optional<std::string> etag{};       // of each object
  std::optional<std::string> copy_etag{};  // of a copy, as the answer says
  bool lists_uploads = true;               // obstore's client does not
  bool can_copy = true;
  bool copies_badly = false;   // another content, of the same length
  bool forgets_parts = false;  // an upload completes without those that had trouble
  std::string ghost{};         // a prefix that is listed though nothing is below it

  std::function<void()> on_part{};  // called before each part is sent
  // Called once, before the next conditional put of a key that ends in `hook_on`.
  std::string hook_on{};
  std::function<void()> hook{};

  // The request with this number, from 0, has trouble.
  void FailAt(std::uint64_t number, Trouble trouble);
  // As if time had passed: what was delayed takes effect.
  void Settle();
  std::uint64_t request_count() const;
  std::uint64_t count(Request kind) const;
  void ResetCounts();
  std::uint64_t held_bytes_max() const;  // of parts, at any time
  std::size_t unfinished_uploads() const;
  // Without a request. `object` for a test that makes or reads one behind the library's back.
  std::map<std::string, Bytes> Objects() const;
  void Set(const std::string& key, Bytes content);

  const std::string& uri() const override { return uri_; }
  std::uint64_t part_size_bytes() const override { return part_size; }
  Status Put(const std::string& key, ByteSpan content) override;
  Status PutIfAbsent(const std::string& key, ByteSpan content) override;
  Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) override;
  Result<std::string> Copy(const StoredObject& from, const std::string& to) override;
  Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                Bytes& out) const override;
  Status GetRanges(const StoredObject& object, std::span<const ObjectRange> ranges) const override;
  Result<StoredObject> Head(const std::string& key) const override;
  Result<ObjectPage> List(const std::string& prefix, const std::string& next) const override;
  Status Delete(std::span<const std::string> keys) override;
  Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const override;
  Status AbortUpload(const UnfinishedUpload& upload) override;

 private:
  class Upload;
  struct Object {
    Bytes content;
    std::uint64_t version = 0;
  };
  struct Delayed {
    std::uint64_t due = 0;  // number of the request that it precedes
    std::function<void()> effect;
  };

  // Counts the request and runs `effect`, under the lock, unless it has trouble: then the error.
  Status Do(Request kind, const std::string& key, const std::function<Status()>& effect) const;
  // Whether the process died before the request with this number. Its uploads stay.
  bool IsDead(std::uint64_t number) const;
  StoredObject InfoOf(const std::string& key, const Object& object) const;
  Status Missing(const std::string& key) const;
  void Make(const std::string& key, Bytes content);  // under the lock

  const std::string uri_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Object> objects_;
  mutable std::uint64_t versions_ = 0;
  mutable std::uint64_t requests_ = 0;
  mutable std::array<std::uint64_t, kRequestKinds> counts_{};
  mutable std::optional<std::uint64_t> fail_at_;
  mutable Trouble trouble_ = Trouble::kRefused;
  mutable std::vector<Delayed> delayed_;
  std::map<std::uint64_t, std::string> uploads_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t held_bytes_max_ = 0;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_MEMORY_OBJECT_STORE_H_
