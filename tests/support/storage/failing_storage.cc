// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storage/failing_storage.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "lib/base/macros.h"

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
    case StorageOp::kLink:
      return "link";
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
         op == StorageOp::kLink || op == StorageOp::kWrite || op == StorageOp::kSyncFile ||
         op == StorageOp::kClose;
}

// The object of an operation: the name that faults and the log use, and the path for errors.
struct Target {
  std::string name;
  std::string path;
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

struct FailingStorage::State {
  struct Limit {
    std::string name;
    std::uint64_t left;
  };

  mutable std::mutex mutex;
  std::vector<std::pair<StorageFault, int>> faults;  // with the calls that matched so far
  std::vector<Limit> limits;
  std::uint64_t fault_count = 0;
  std::function<void(StorageOp, std::string_view)> hook;
  std::function<void(std::string_view, WriteRequest&)> write_hook;
  std::function<void(std::string_view, std::uint64_t, MutableByteSpan)> read_hook;
  std::optional<Capabilities> capabilities;
  std::optional<SpaceInfo> space;
  std::vector<StorageCall> calls;
  std::vector<std::string> changes;

  // The fault that applies to this operation, if any. `size` is the size of a write.
  std::optional<StorageFault> Begin(StorageOp op, const Target& target, std::uint64_t size) {
    const std::string& name = target.name;
    std::function<void(StorageOp, std::string_view)> call;
    std::optional<StorageFault> found;
    {
      const std::lock_guard lock(mutex);
      call = hook;
      std::string line(VerbOf(op));
      if (NamesAFile(op)) line.append(" ").append(name);
      if (!line.empty() && (changes.empty() || changes.back() != line)) changes.push_back(line);
      for (auto& [fault, matched] : faults) {
        if ((fault.op != op && !fault.any_op) || !Contains(name, fault.name)) continue;
        if (!Contains(target.path, fault.path)) continue;
        ++matched;
        const bool is_hit =
            fault.nth == 0 || matched == fault.nth || (fault.persists && matched > fault.nth);
        if (!found && is_hit) found = fault;
      }
      if (op == StorageOp::kWrite && !found) found = PassLimits(name, size);
      if (found) ++fault_count;
    }
    if (call) call(op, name);
    return found;
  }

  std::optional<StorageFault> PassLimits(std::string_view name, std::uint64_t size) {
    std::uint64_t fits = size;
    for (const Limit& limit : limits) {
      if (Contains(name, limit.name)) fits = std::min(fits, limit.left);
    }
    for (Limit& limit : limits) {
      if (Contains(name, limit.name)) limit.left = fits < size ? 0 : limit.left - size;
    }
    if (fits == size) return std::nullopt;
    return StorageFault{.error = {Code::kNoSpace, "injected: full"}, .part_size = fits};
  }

  void Log(StorageOp op, std::string_view name, Code code) {
    const std::lock_guard lock(mutex);
    calls.push_back({op, std::string(name), code});
  }

  // Runs an operation that gives a Status or a Result; part(n) does the first n bytes of it.
  template <typename Operation, typename Part>
  auto Run(StorageOp op, const Target& target, std::uint64_t size, const Operation& operation,
           const Part& part) -> decltype(operation()) {
    using Outcome = decltype(operation());
    const std::optional<StorageFault> fault = Begin(op, target, size);
    Outcome outcome = [&]() -> Outcome {
      if (!fault) return operation();
      if (fault->takes_effect) static_cast<void>(operation());
      if (fault->part_size > 0) part(std::min(fault->part_size, size));
      if constexpr (std::is_same_v<Outcome, Status>) {
        if (fault->is_lie) return Status();
      }
      return Status(fault->error).AtPath(target.path);
    }();
    if constexpr (std::is_same_v<Outcome, Status>) {
      Log(op, target.name, outcome.code());
    } else {
      Log(op, target.name, outcome.error().code());
    }
    return outcome;
  }

  template <typename Operation>
  auto Run(StorageOp op, const Target& target, const Operation& operation)
      -> decltype(operation()) {
    return Run(op, target, 0, operation, [](std::uint64_t) {});
  }
};

class FailingStorage::FailingWriter final : public ForwardingWriter {
 public:
  FailingWriter(std::unique_ptr<WritableFile> inner, Target target, std::shared_ptr<State> state)
      : ForwardingWriter(std::move(inner)), target_(std::move(target)), state_(std::move(state)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override {
    return state_->Run(
        StorageOp::kWrite, target_, data.size(), [&] { return Store(offset, data); },
        [&](std::uint64_t size) {
          static_cast<void>(ForwardingWriter::WriteAt(offset, data.first(size)));
        });
  }
  Status Preallocate(std::uint64_t size_bytes) override {
    return state_->Run(StorageOp::kPreallocate, target_,
                       [&] { return ForwardingWriter::Preallocate(size_bytes); });
  }
  Status Sync() override {
    return state_->Run(StorageOp::kSyncFile, target_, [&] { return ForwardingWriter::Sync(); });
  }
  Status Close() override {
    return state_->Run(StorageOp::kClose, target_, [&] { return ForwardingWriter::Close(); });
  }

 private:
  Status Store(std::uint64_t offset, ByteSpan data) {
    std::function<void(std::string_view, WriteRequest&)> hook;
    {
      const std::lock_guard lock(state_->mutex);
      hook = state_->write_hook;
    }
    if (!hook) return ForwardingWriter::WriteAt(offset, data);
    WriteRequest request{.offset = offset, .data = Bytes(data.begin(), data.end())};
    hook(target_.name, request);
    return request.is_lost ? Status() : ForwardingWriter::WriteAt(request.offset, request.data);
  }

  const Target target_;
  const std::shared_ptr<State> state_;
};

class FailingStorage::FailingReader final : public ForwardingReader {
 public:
  FailingReader(std::unique_ptr<ReadableFile> inner, Target target, std::shared_ptr<State> state)
      : ForwardingReader(std::move(inner)), target_(std::move(target)), state_(std::move(state)) {}

  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    return state_->Run(
        StorageOp::kRead, target_, out.size(), [&] { return Fetch(offset, out); },
        [&](std::uint64_t size) {
          static_cast<void>(ForwardingReader::ReadAt(offset, out.first(size)));
        });
  }

 private:
  Status Fetch(std::uint64_t offset, MutableByteSpan out) const {
    Status read = ForwardingReader::ReadAt(offset, out);
    std::function<void(std::string_view, std::uint64_t, MutableByteSpan)> hook;
    {
      const std::lock_guard lock(state_->mutex);
      hook = state_->read_hook;
    }
    if (read.ok() && hook) hook(target_.name, offset, out);
    return read;
  }

  const Target target_;
  const std::shared_ptr<State> state_;
};

class FailingStorage::FailingDirectory final : public ForwardingDirectory {
 public:
  FailingDirectory(std::unique_ptr<Directory> inner, std::shared_ptr<State> state)
      : ForwardingDirectory(std::move(inner)), state_(std::move(state)) {}

  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions options) override {
    using Made = Result<std::unique_ptr<WritableFile>>;
    return state_->Run(StorageOp::kCreate, File(name), [&]() -> Made {
      auto file = ForwardingDirectory::CreateExclusive(name, options);
      if (!file.ok()) return file;
      return Made(std::make_unique<FailingWriter>(std::move(file).value(), File(name), state_));
    });
  }
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override {
    using Opened = Result<std::unique_ptr<ReadableFile>>;
    return state_->Run(StorageOp::kOpenForRead, File(name), [&]() -> Opened {
      auto file = ForwardingDirectory::OpenForRead(name, mode);
      if (!file.ok()) return file;
      return Opened(std::make_unique<FailingReader>(std::move(file).value(), File(name), state_));
    });
  }
  Result<EntryInfo> Stat(std::string_view name) const override {
    return state_->Run(StorageOp::kStat, File(name),
                       [&] { return ForwardingDirectory::Stat(name); });
  }
  Result<std::vector<EntryInfo>> List() const override {
    return state_->Run(StorageOp::kList, Whole(), [&] { return ForwardingDirectory::List(); });
  }
  // Two operations, as by the other calls: the file is opened, and read.
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override {
    const Target target{std::string(name), JoinPath(JoinPath(path(), subdirectory), name)};
    Bytes bytes;
    const Status opened = state_->Run(StorageOp::kOpenForRead, target, [&]() -> Status {
      SEALPOINT_ASSIGN_OR_RETURN(bytes,
                                 ForwardingDirectory::ReadFileIn(subdirectory, name, size_max));
      return Status();
    });
    SEALPOINT_RETURN_IF_ERROR(opened);
    SEALPOINT_RETURN_IF_ERROR(
        state_->Run(StorageOp::kRead, target, [&]() -> Status { return MeddleWith(name, bytes); }));
    return bytes;
  }
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override {
    using Opened = Result<std::unique_ptr<Directory>>;
    const std::string path_of_it = JoinPath(path(), name);
    return state_->Run(StorageOp::kOpenDirectory, Target{path_of_it, path_of_it}, [&]() -> Opened {
      auto directory = ForwardingDirectory::OpenSubdirectory(name);
      if (!directory.ok()) return directory;
      return Opened(std::make_unique<FailingDirectory>(std::move(directory).value(), state_));
    });
  }
  Status RemoveSubdirectory(std::string_view name) override {
    const std::string path_of_it = JoinPath(path(), name);
    return state_->Run(StorageOp::kRemoveDirectory, Target{path_of_it, path_of_it},
                       [&] { return ForwardingDirectory::RemoveSubdirectory(name); });
  }
  Status Remove(std::string_view name) override {
    return state_->Run(StorageOp::kRemove, File(name),
                       [&] { return ForwardingDirectory::Remove(name); });
  }
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override {
    return state_->Run(StorageOp::kPublish, File(from),
                       [&] { return ForwardingDirectory::PublishExclusive(from, to, method); });
  }
  Status PutIfAbsent(std::string_view name, ByteSpan content) override {
    return state_->Run(StorageOp::kPublish, File(name),
                       [&] { return ForwardingDirectory::PutIfAbsent(name, content); });
  }
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override {
    return state_->Run(StorageOp::kLink, File(name), [&] {
      return ForwardingDirectory::LinkFrom(directory, name, name_count_max);
    });
  }
  Status Sync() override {
    return state_->Run(StorageOp::kSyncDirectory, Whole(),
                       [&] { return ForwardingDirectory::Sync(); });
  }
  Result<SpaceInfo> FreeSpace() const override {
    return state_->Run(StorageOp::kFreeSpace, Whole(), [&]() -> Result<SpaceInfo> {
      const std::lock_guard lock(state_->mutex);
      return state_->space ? Result<SpaceInfo>(*state_->space) : ForwardingDirectory::FreeSpace();
    });
  }
  Result<Capabilities> Probe(std::string_view probe_name) override {
    return state_->Run(StorageOp::kProbe, File(probe_name), [&]() -> Result<Capabilities> {
      const std::lock_guard lock(state_->mutex);
      return state_->capabilities ? Result<Capabilities>(*state_->capabilities)
                                  : ForwardingDirectory::Probe(probe_name);
    });
  }

 private:
  Status MeddleWith(std::string_view name, Bytes& bytes) const {
    std::function<void(std::string_view, std::uint64_t, MutableByteSpan)> hook;
    {
      const std::lock_guard lock(state_->mutex);
      hook = state_->read_hook;
    }
    if (hook) hook(name, 0, bytes);
    return Status();
  }
  Target File(std::string_view name) const { return {std::string(name), JoinPath(path(), name)}; }
  Target Whole() const { return {path(), path()}; }

  const std::shared_ptr<State> state_;
};

FailingStorage::FailingStorage(std::shared_ptr<Storage> inner)
    : ForwardingStorage(std::move(inner)), state_(std::make_shared<State>()) {}

FailingStorage::~FailingStorage() = default;

void FailingStorage::Fail(StorageFault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.emplace_back(std::move(fault), 0);
}

void FailingStorage::LimitBytes(std::uint64_t byte_count, std::string name) {
  const std::lock_guard lock(state_->mutex);
  state_->limits.push_back({std::move(name), byte_count});
}

void FailingStorage::Heal() {
  const std::lock_guard lock(state_->mutex);
  state_->faults.clear();
  state_->limits.clear();
  state_->hook = nullptr;
  state_->write_hook = nullptr;
  state_->read_hook = nullptr;
}

void FailingStorage::SetHook(std::function<void(StorageOp, std::string_view)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

void FailingStorage::SetWriteHook(std::function<void(std::string_view, WriteRequest&)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->write_hook = std::move(hook);
}

void FailingStorage::SetReadHook(
    std::function<void(std::string_view, std::uint64_t, MutableByteSpan)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->read_hook = std::move(hook);
}

void FailingStorage::Claim(Capabilities capabilities) {
  const std::lock_guard lock(state_->mutex);
  state_->capabilities = capabilities;
}

void FailingStorage::Claim(SpaceInfo space) {
  const std::lock_guard lock(state_->mutex);
  state_->space = space;
}

std::uint64_t FailingStorage::fault_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->fault_count;
}

std::vector<StorageCall> FailingStorage::calls() const {
  const std::lock_guard lock(state_->mutex);
  return state_->calls;
}

std::vector<std::string> FailingStorage::changes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->changes;
}

void FailingStorage::ClearLog() {
  const std::lock_guard lock(state_->mutex);
  state_->changes.clear();
  state_->calls.clear();
}

Result<std::unique_ptr<Directory>> FailingStorage::OpenDirectory(std::string_view path) const {
  using Opened = Result<std::unique_ptr<Directory>>;
  return state_->Run(
      StorageOp::kOpenDirectory, Target{std::string(path), std::string(path)}, [&]() -> Opened {
        auto directory = ForwardingStorage::OpenDirectory(path);
        if (!directory.ok()) return directory;
        return Opened(std::make_unique<FailingDirectory>(std::move(directory).value(), state_));
      });
}

Status FailingStorage::CreateDirectories(std::string_view path) {
  return state_->Run(StorageOp::kCreateDirectories, Target{std::string(path), std::string(path)},
                     [&] { return ForwardingStorage::CreateDirectories(path); });
}

}  // namespace sealpoint::testing
