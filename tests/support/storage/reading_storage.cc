// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storage/reading_storage.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::testing {

struct ReadingStorage::State {
  BeforeRead before_read;
  mutable std::mutex mutex;
  ReadLog log;
};

class ReadingStorage::LoggedFile final : public ForwardingReader {
 public:
  LoggedFile(std::unique_ptr<ReadableFile> inner, std::string name, std::shared_ptr<State> state)
      : ForwardingReader(std::move(inner)), name_(std::move(name)), state_(std::move(state)) {
    const std::lock_guard lock(state_->mutex);
    ReadLog& log = state_->log;
    log.open_file_count_max = std::max(log.open_file_count_max, ++log.open_file_count);
  }
  ~LoggedFile() override {
    const std::lock_guard lock(state_->mutex);
    --state_->log.open_file_count;
  }

  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    const ReadCall call{.name = name_, .offset = offset, .size = out.size()};
    if (state_->before_read) SEALPOINT_RETURN_IF_ERROR(state_->before_read(call));
    SEALPOINT_RETURN_IF_ERROR(ForwardingReader::ReadAt(offset, out));
    const std::lock_guard lock(state_->mutex);
    state_->log.reads.push_back(call);
    const auto skew = (reinterpret_cast<std::uintptr_t>(out.data()) - offset) % 4096;
    if (0 < skew && skew < 32) state_->log.skewed_bytes += out.size();
    return {};
  }
  void WillRead(std::uint64_t offset, std::uint64_t size) const override {
    {
      const std::lock_guard lock(state_->mutex);
      ReadLog& log = state_->log;
      log.named.push_back({{.name = name_, .offset = offset, .size = size}, log.reads.size()});
    }
    ForwardingReader::WillRead(offset, size);
  }

 private:
  const std::string name_;
  const std::shared_ptr<State> state_;
};

class ReadingStorage::LoggedDirectory final : public ForwardingDirectory {
 public:
  LoggedDirectory(std::unique_ptr<Directory> inner, std::shared_ptr<State> state)
      : ForwardingDirectory(std::move(inner)), state_(std::move(state)) {}

  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override {
    SEALPOINT_ASSIGN_OR_RETURN(auto file, ForwardingDirectory::OpenForRead(name, mode));
    std::unique_ptr<ReadableFile> logged =
        std::make_unique<LoggedFile>(std::move(file), std::string(name), state_);
    return logged;
  }
  Result<EntryInfo> Stat(std::string_view name) const override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->log.stats.emplace_back(name);
    }
    return ForwardingDirectory::Stat(name);
  }

 private:
  const std::shared_ptr<State> state_;
};

ReadingStorage::ReadingStorage(std::shared_ptr<Storage> inner, BeforeRead before_read)
    : ForwardingStorage(std::move(inner)), state_(std::make_shared<State>()) {
  state_->before_read = std::move(before_read);
}

ReadingStorage::~ReadingStorage() = default;

Result<std::unique_ptr<Directory>> ReadingStorage::OpenDirectory(std::string_view path) const {
  SEALPOINT_ASSIGN_OR_RETURN(auto directory, ForwardingStorage::OpenDirectory(path));
  std::unique_ptr<Directory> logged =
      std::make_unique<LoggedDirectory>(std::move(directory), state_);
  return logged;
}

ReadLog ReadingStorage::log() const {
  const std::lock_guard lock(state_->mutex);
  return state_->log;
}

void ReadingStorage::ClearLog() {
  const std::lock_guard lock(state_->mutex);
  state_->log.reads.clear();
  state_->log.named.clear();
  state_->log.stats.clear();
}

}  // namespace sealpoint::testing
