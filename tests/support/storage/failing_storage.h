// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_FAILING_STORAGE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_FAILING_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/storage/forwarding_storage.h"

namespace sealpoint::testing {

enum class StorageOp : std::uint8_t {
  kOpenDirectory,
  kCreateDirectories,
  kRemoveDirectory,
  kCreate,
  kOpenForRead,
  kRead,
  kStat,
  kList,
  kRemove,
  kPublish,
  kLink,
  kSyncDirectory,
  kFreeSpace,
  kProbe,
  kWrite,
  kSyncFile,
  kClose,
  kPreallocate,
};

// One operation that is to fail.
struct StorageFault {
  StorageOp op = StorageOp::kWrite;
  bool any_op = false;    // any operation; `op` is ignored
  std::string name{};     // part of the file's name (or of the directory's path); empty: any
  std::string path{};     // part of the file's path; empty: any
  int nth = 1;            // counted from 1 among the calls that match; 0: all of them
  bool persists = false;  // all later ones fail as well
  Status error{Code::kIo, "injected"};
  bool takes_effect = false;    // the operation is done, and then reported as failed
  std::uint64_t part_size = 0;  // the bytes of a write or read that are done before it fails
  bool is_lie = false;          // nothing is done and success is reported, if that needs no value
};

// A call in the log.
struct StorageCall {
  StorageOp op = StorageOp::kWrite;
  std::string name{};     // of the file, or the path of the directory
  Code code = Code::kOk;  // what was reported
};

// Bytes on their way into a file, which a hook may change.
struct WriteRequest {
  std::uint64_t offset = 0;
  Bytes data{};
  bool is_lost = false;  // not written, but success is reported
};

// Wraps a storage, logs every call and makes chosen ones fail. Files and directories share its
// state and may outlive it. Thread safety: all functions.
class FailingStorage final : public ForwardingStorage {
 public:
  explicit FailingStorage(std::shared_ptr<Storage> inner);
  ~FailingStorage() override;

  void Fail(StorageFault fault);
  // Allows only so many more bytes in files whose names contain `name`: the write that exceeds the
  // limit stores what fits and fails with NoSpace, and so do all later ones.
  void LimitBytes(std::uint64_t byte_count, std::string name = {});
  // Forgets faults, limits and hooks, not the log.
  void Heal();
  // Called before each operation, with what the log says of it.
  void SetHook(std::function<void(StorageOp, std::string_view name)> hook);
  // May change what is written, at which offset, and whether it is written.
  void SetWriteHook(std::function<void(std::string_view name, WriteRequest&)> hook);
  // May change what was read from `offset` on.
  void SetReadHook(
      std::function<void(std::string_view name, std::uint64_t offset, MutableByteSpan)> hook);
  // Makes the directories report these capabilities.
  void Claim(Capabilities capabilities);
  void Claim(SpaceInfo space);

  // Operations that failed on purpose so far.
  std::uint64_t fault_count() const;
  // All calls, in the order of their ends.
  std::vector<StorageCall> calls() const;
  // "create x.blob", "write x.blob", "sync x.blob", "close x.blob", "sync directory",
  // "publish a.commit", "remove x.blob", … in the order in which they began. Repetitions of the
  // same line are given once. Operations that only look (open, read, stat, list) are left out.
  std::vector<std::string> changes() const;
  void ClearLog();

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;
  Status CreateDirectories(std::string_view path) override;

 private:
  struct State;
  class FailingDirectory;
  class FailingReader;
  class FailingWriter;
  std::shared_ptr<State> state_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_FAILING_STORAGE_H_
