// SPDX-License-Identifier: Apache-2.0
#include "tests/support/failing_storage.h"

#include <mutex>
#include <utility>

namespace sealpoint::testing {
namespace {

std::string_view VerbOf(StorageOp op) {
  switch (op) {
    case StorageOp::kCreateDirectories:
      return "make directory";
    case StorageOp::kRemoveDirectory:
      return "remove directory";
    case StorageOp::kCreate:
      return "create";
    case StorageOp::kRemove:
      return "remove";
    case StorageOp::kPublish:
      return "publish";
    case StorageOp::kSyncDirectory:
      return "sync directory";
    case StorageOp::kProbe:
      return "probe";
    case StorageOp::kWrite:
      return "write";
    case StorageOp::kSyncFile:
      return "sync";
    case StorageOp::kClose:
      return "close";
    default:
      return "";
  }
}

bool NamesAFile(StorageOp op) {
  return op == StorageOp::kCreate || op == StorageOp::kRemove || op == StorageOp::kPublish ||
         op == StorageOp::kWrite || op == StorageOp::kSyncFile || op == StorageOp::kClose;
}

}  // namespace

struct FailingStorage::State {
  mutable std::mutex mutex;
  std::vector<std::pair<StorageFault, int>> faults;  // with the calls that matched so far
  std::function<void(StorageOp, std::string_view)> hook;
  std::optional<Capabilities> capabilities;
  std::optional<SpaceInfo> space;
  std::vector<std::string> changes;

  std::optional<StorageFault> Begin(StorageOp op, std::string_view name) {
    std::function<void(StorageOp, std::string_view)> call;
    std::optional<StorageFault> found;
    {
      const std::lock_guard lock(mutex);
      call = hook;
      std::string line(VerbOf(op));
      if (NamesAFile(op)) line.append(" ").append(name);
      if (!line.empty() && (changes.empty() || changes.back() != line)) changes.push_back(line);
      for (auto& [fault, matched] : faults) {
        if (fault.op != op || name.find(fault.name) == std::string_view::npos) continue;
        ++matched;
        if (!found && (fault.nth == 0 || matched == fault.nth)) found = fault;
      }
    }
    if (call) call(op, name);
    return found;
  }

  // Runs an operation that gives a Status or a Result.
  template <typename Operation>
  auto Run(StorageOp op, std::string_view name, const Operation& operation)
      -> decltype(operation()) {
    const std::optional<StorageFault> fault = Begin(op, name);
    if (!fault) return operation();
    if (fault->takes_effect) static_cast<void>(operation());
    return Status(fault->error).AtPath(name);
  }
};

class FailingStorage::FailingWriter final : public ForwardingWriter {
 public:
  FailingWriter(std::unique_ptr<WritableFile> inner, std::string name, std::shared_ptr<State> state)
      : ForwardingWriter(std::move(inner)), name_(std::move(name)), state_(std::move(state)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override {
    return state_->Run(StorageOp::kWrite, name_,
                       [&] { return ForwardingWriter::WriteAt(offset, data); });
  }
  Status Sync() override {
    return state_->Run(StorageOp::kSyncFile, name_, [&] { return ForwardingWriter::Sync(); });
  }
  Status Close() override {
    return state_->Run(StorageOp::kClose, name_, [&] { return ForwardingWriter::Close(); });
  }

 private:
  const std::string name_;
  const std::shared_ptr<State> state_;
};

class FailingStorage::FailingReader final : public ForwardingReader {
 public:
  FailingReader(std::unique_ptr<ReadableFile> inner, std::string name, std::shared_ptr<State> state)
      : ForwardingReader(std::move(inner)), name_(std::move(name)), state_(std::move(state)) {}

  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    return state_->Run(StorageOp::kRead, name_,
                       [&] { return ForwardingReader::ReadAt(offset, out); });
  }

 private:
  const std::string name_;
  const std::shared_ptr<State> state_;
};

class FailingStorage::FailingDirectory final : public ForwardingDirectory {
 public:
  FailingDirectory(std::unique_ptr<Directory> inner, std::shared_ptr<State> state)
      : ForwardingDirectory(std::move(inner)), state_(std::move(state)) {}

  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        IoMode mode) override {
    using Made = Result<std::unique_ptr<WritableFile>>;
    return state_->Run(StorageOp::kCreate, name, [&]() -> Made {
      auto file = ForwardingDirectory::CreateExclusive(name, mode);
      if (!file.ok()) return file;
      return Made(
          std::make_unique<FailingWriter>(std::move(file).value(), std::string(name), state_));
    });
  }
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override {
    using Opened = Result<std::unique_ptr<ReadableFile>>;
    return state_->Run(StorageOp::kOpenForRead, name, [&]() -> Opened {
      auto file = ForwardingDirectory::OpenForRead(name, mode);
      if (!file.ok()) return file;
      return Opened(
          std::make_unique<FailingReader>(std::move(file).value(), std::string(name), state_));
    });
  }
  Result<EntryInfo> Stat(std::string_view name) const override {
    return state_->Run(StorageOp::kStat, name, [&] { return ForwardingDirectory::Stat(name); });
  }
  Result<std::vector<EntryInfo>> List() const override {
    return state_->Run(StorageOp::kList, path(), [&] { return ForwardingDirectory::List(); });
  }
  Status Remove(std::string_view name) override {
    return state_->Run(StorageOp::kRemove, name, [&] { return ForwardingDirectory::Remove(name); });
  }
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override {
    return state_->Run(StorageOp::kPublish, from,
                       [&] { return ForwardingDirectory::PublishExclusive(from, to, method); });
  }
  Status Sync() override {
    return state_->Run(StorageOp::kSyncDirectory, path(),
                       [&] { return ForwardingDirectory::Sync(); });
  }
  Result<SpaceInfo> FreeSpace() const override {
    return state_->Run(StorageOp::kFreeSpace, path(), [&]() -> Result<SpaceInfo> {
      const std::lock_guard lock(state_->mutex);
      return state_->space ? Result<SpaceInfo>(*state_->space) : ForwardingDirectory::FreeSpace();
    });
  }
  Result<Capabilities> Probe(std::string_view probe_name) override {
    return state_->Run(StorageOp::kProbe, probe_name, [&]() -> Result<Capabilities> {
      const std::lock_guard lock(state_->mutex);
      return state_->capabilities ? Result<Capabilities>(*state_->capabilities)
                                  : ForwardingDirectory::Probe(probe_name);
    });
  }

 private:
  const std::shared_ptr<State> state_;
};

FailingStorage::FailingStorage(std::shared_ptr<Storage> inner)
    : ForwardingStorage(std::move(inner)), state_(std::make_shared<State>()) {}

FailingStorage::~FailingStorage() = default;

void FailingStorage::Fail(StorageFault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.emplace_back(std::move(fault), 0);
}

void FailingStorage::Heal() {
  const std::lock_guard lock(state_->mutex);
  state_->faults.clear();
  state_->hook = nullptr;
}

void FailingStorage::SetHook(std::function<void(StorageOp, std::string_view)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

void FailingStorage::Claim(Capabilities capabilities) {
  const std::lock_guard lock(state_->mutex);
  state_->capabilities = capabilities;
}

void FailingStorage::Claim(SpaceInfo space) {
  const std::lock_guard lock(state_->mutex);
  state_->space = space;
}

std::vector<std::string> FailingStorage::changes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->changes;
}

void FailingStorage::ClearLog() {
  const std::lock_guard lock(state_->mutex);
  state_->changes.clear();
}

Result<std::unique_ptr<Directory>> FailingStorage::OpenDirectory(std::string_view path) const {
  using Opened = Result<std::unique_ptr<Directory>>;
  return state_->Run(StorageOp::kOpenDirectory, path, [&]() -> Opened {
    auto directory = ForwardingStorage::OpenDirectory(path);
    if (!directory.ok()) return directory;
    return Opened(std::make_unique<FailingDirectory>(std::move(directory).value(), state_));
  });
}

Status FailingStorage::CreateDirectories(std::string_view path) {
  return state_->Run(StorageOp::kCreateDirectories, path,
                     [&] { return ForwardingStorage::CreateDirectories(path); });
}

Status FailingStorage::RemoveDirectory(std::string_view path) {
  return state_->Run(StorageOp::kRemoveDirectory, path,
                     [&] { return ForwardingStorage::RemoveDirectory(path); });
}

}  // namespace sealpoint::testing
