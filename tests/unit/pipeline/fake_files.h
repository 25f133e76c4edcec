// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_PIPELINE_FAKE_FILES_H_
#define SEALPOINT_TESTS_UNIT_PIPELINE_FAKE_FILES_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::pipeline {

// A file in memory whose writes can be failed by number and held at a gate; keeps a list of them.
class FakeWritableFile final : public WritableFile {
 public:
  struct Write {
    std::uint64_t offset;
    std::uint64_t size;
    bool aligned;  // offset, size and address
  };

  Status WriteAt(std::uint64_t offset, ByteSpan data) override {
    std::unique_lock lock(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(data.data());
    writes_.push_back({offset, data.size(), (offset | data.size() | address) % 4096 == 0});
    const std::size_t number = writes_.size();
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_ || number == admitted_; });
    ++finished_;
    if (const auto failure = failures_.find(number); failure != failures_.end()) {
      return failure->second;
    }
    content_.resize(std::max<std::size_t>(content_.size(), offset + data.size()));
    std::copy(data.begin(), data.end(), content_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Status Preallocate(std::uint64_t) override { return {}; }
  Status Sync() override { return {}; }
  Status Close() override { return {}; }
  bool is_direct() const override { return true; }

  // The `number`-th write, from 1, fails with `failure`.
  void FailWrite(std::size_t number, Status failure) {
    const std::lock_guard lock(mutex_);
    failures_[number] = std::move(failure);
  }
  void CloseGate() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void OpenGate() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Lets the `number`-th write, from 1, pass the closed gate.
  void Admit(std::size_t number) {
    const std::lock_guard lock(mutex_);
    admitted_ = number;
    changed_.notify_all();
  }
  void WaitUntilBegun(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }
  std::size_t finished() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  // Sorted by offset.
  std::vector<Write> writes() {
    const std::lock_guard lock(mutex_);
    std::vector<Write> sorted = writes_;
    std::sort(sorted.begin(), sorted.end(),
              [](const Write& a, const Write& b) { return a.offset < b.offset; });
    return sorted;
  }
  Bytes content() {
    const std::lock_guard lock(mutex_);
    return content_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Bytes content_;
  std::vector<Write> writes_;
  std::size_t begun_ = 0;
  std::size_t finished_ = 0;
  std::size_t admitted_ = 0;
  std::map<std::size_t, Status> failures_;
  bool open_ = true;
};

// Content in memory, read as WritableFile's contract says for direct or buffered files.
class FakeReadableFile final : public ReadableFile {
 public:
  FakeReadableFile(Bytes content, bool direct) : content_(std::move(content)), direct_(direct) {}

  std::uint64_t size_bytes() const override { return content_.size(); }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    reads_.emplace_back(offset, out.size());
    if (failure_) return *failure_;
    const auto address = reinterpret_cast<std::uintptr_t>(out.data());
    if (direct_ && (offset | out.size() | address) % 4096 != 0) {
      return Status(Code::kInvalidArgument, "misaligned");
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = offset + i < content_.size() ? content_[offset + i] : std::byte{0};
    }
    return {};
  }
  bool is_direct() const override { return direct_; }

  void Fail(Status failure) { failure_ = std::move(failure); }
  // Offset and size of each call.
  const std::vector<std::pair<std::uint64_t, std::uint64_t>>& reads() const { return reads_; }

 private:
  Bytes content_;
  bool direct_;
  std::optional<Status> failure_;
  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> reads_;
};

inline Bytes NumberedBytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  return bytes;
}

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_TESTS_UNIT_PIPELINE_FAKE_FILES_H_
