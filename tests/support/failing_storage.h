// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_FAILING_STORAGE_H_
#define SEALPOINT_TESTS_SUPPORT_FAILING_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/forwarding_storage.h"

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
  kSyncDirectory,
  kFreeSpace,
  kProbe,
  kWrite,
  kSyncFile,
  kClose,
};

// One operation that is to fail.
struct StorageFault {
  StorageOp op = StorageOp::kWrite;
  std::string name{};  // part of the file's name (or of the directory's path); empty: any
  int nth = 1;         // counted from 1 among the calls that match; 0: all of them
  Status error{Code::kIo, "injected"};
  bool takes_effect = false;  // the operation is done, and then reported as failed
};

// Another storage that writes down every call and fails those it is told to. Files and directories
// share its state and may outlive it. Thread safety: all functions.
class FailingStorage final : public ForwardingStorage {
 public:
  explicit FailingStorage(std::shared_ptr<Storage> inner);
  ~FailingStorage() override;

  void Fail(StorageFault fault);
  // Forgets faults and hooks, not the log.
  void Heal();
  // Called before each operation, with what the log says of it.
  void SetHook(std::function<void(StorageOp, std::string_view name)> hook);
  // What the directories claim instead of what they offer.
  void Claim(Capabilities capabilities);
  void Claim(SpaceInfo space);

  // "create x.blob", "write x.blob", "sync x.blob", "close x.blob", "sync directory",
  // "publish a.commit", "remove x.blob", … in the order of their beginning; repetitions of the same
  // line are given once. Reads and looks (open, read, stat, list) are left out.
  std::vector<std::string> changes() const;
  void ClearLog();

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;
  Status CreateDirectories(std::string_view path) override;
  Status RemoveDirectory(std::string_view path) override;

 private:
  struct State;
  class FailingDirectory;
  class FailingReader;
  class FailingWriter;
  std::shared_ptr<State> state_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_FAILING_STORAGE_H_
