// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_STATUS_H_
#define SEALPOINT_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "sealpoint/export.h"

namespace sealpoint {

// Error codes that callers may want to distinguish. The numeric values are exchanged between ranks
// and are stable; new codes are appended.
enum class Code : std::uint8_t {
  kOk = 0,
  // A wrong argument: overlapping or missing regions, a duplicate name, null memory.
  kInvalidArgument = 1,
  // A path, tensor or object with the given name does not exist.
  kNotFound = 2,
  // The directory already has a marker; nothing was changed.
  kAlreadyExists = 3,
  // Not a Sealpoint checkpoint: wrong magic, or no Sealpoint file in the directory.
  kNotACheckpoint = 4,
  // No commit marker, or a void marker: the checkpoint does not exist.
  kUncommitted = 5,
  // The marker is intact but a pinned file is missing or too short, for example after a partial
  // copy.
  kIncomplete = 6,
  // The bytes differ from the committed bytes. Restore this checkpoint or use an older checkpoint.
  kCorrupt = 7,
  // Valid, but written with a version, feature or id that this build does not support.
  kUnsupported = 8,
  // A limit of spec/limits.md was exceeded; callers may raise the limit.
  kLimitExceeded = 9,
  // The checkpoint does not fulfil the caller's LoadContract.
  kMismatch = 10,
  // The storage reported an error; the message names the operation and the errno.
  kIo = 11,
  // The storage is full (ENOSPC, EDQUOT, no inodes).
  kNoSpace = 12,
  // A CUDA call failed.
  kDevice = 13,
  // The communicator failed, or another rank exited.
  kComm = 14,
  // A deadline passed.
  kTimeout = 15,
  // The caller cancelled or destroyed the operation.
  kCancelled = 16,
  // A bug in this library.
  kInternal = 17,
};

// Returns the name that the documentation uses: "Corrupt", "NoSpace", …. Never fails.
SEALPOINT_EXPORT std::string_view CodeName(Code code);

// Location of an error. Each part is optional; an absent part is not printed.
struct Place {
  std::string rule{};                     // id in spec/, such as "R-HDR-03"
  std::string path{};                     // path as given by the caller, plus the file name
  std::optional<std::uint64_t> offset{};  // byte offset in `path`
  std::string tensor{};                   // tensor name; empty for an error about an object
  std::string object{};                   // object name; empty for an error about a tensor
  std::optional<int> rank{};              // rank of the first cause
  std::string host{};                     // host name of that rank
  friend bool operator==(const Place&, const Place&) = default;
};

// The outcome of an operation that returns no value. A value type: copyable, comparable, printable.
// Has the thread safety of std::string.
class [[nodiscard]] SEALPOINT_EXPORT Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const Place& place() const { return place_; }
  // True if it is unknown whether the operation took effect (see OutcomeIsUnknown in commit.h).
  bool has_unknown_outcome() const { return has_unknown_outcome_; }
  // True if the process or the machine has too many open files (EMFILE, ENFILE).
  bool is_out_of_files() const { return is_out_of_files_; }

  // The functions below add parts of the location to an error. A part that is already set is kept,
  // because the innermost frame knows the location best. These functions have no effect on a
  // success Status.
  Status&& AtRule(std::string_view rule) &&;
  Status&& AtPath(std::string_view path) &&;
  Status&& AtOffset(std::uint64_t offset) &&;
  // An error concerns either one tensor or one object, so only the first call to AtTensor or
  // AtObject has an effect.
  Status&& AtTensor(std::string_view name) &&;
  Status&& AtObject(std::string_view name) &&;
  Status&& AtRank(int rank, std::string_view host) &&;
  // Marks the error of an operation that may have taken effect despite the error.
  Status&& WithUnknownOutcome() &&;
  // Marks an error that is caused by too many open files. The library then closes the files that it
  // keeps open for later use, and retries the operation.
  Status&& OutOfFiles() &&;
  // States that the caller ignores this status. Use this function if a later call reports the same
  // error (Declaration, Sources).
  void IgnoreError() const {}
  // Puts "prefix: " before the message.
  Status&& Prefixed(std::string_view prefix) &&;

  // Returns one line, escaped by Printable (bytes.h), for example "Corrupt: header digest differs
  // [rule R-HDR-05, offset 40]".
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
  Place place_;
  bool has_unknown_outcome_ = false;
  bool is_out_of_files_ = false;
};

// Prints "sealpoint: value() of a failed Result: …" to stderr and aborts.
[[noreturn]] SEALPOINT_EXPORT void AbortOnBadResultAccess(const Status& status);

// A value, or the error Status of a failed operation; similar to std::expected<T, Status>. Calling
// value() or operator* on an error is a programming error: the program prints the status and
// aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: as std::expected
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {  // NOLINT: likewise
    if (std::get<1>(state_).ok()) AbortOnBadResultAccess(std::get<1>(state_));
  }

  bool has_value() const { return state_.index() == 0; }
  bool ok() const { return has_value(); }
  explicit operator bool() const { return has_value(); }

  T& value() & { return Checked(); }
  const T& value() const& { return const_cast<Result*>(this)->Checked(); }
  // Returns by value, so that `for (auto& x : F().value())` iterates over a live object.
  T value() && { return std::move(Checked()); }
  T& operator*() & { return Checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Checked(); }
  T operator*() && { return std::move(Checked()); }
  T* operator->() { return &Checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->Checked(); }

  // Returns the error, or a success Status if there is a value.
  const Status& error() const& { return has_value() ? OkStatus() : std::get<1>(state_); }
  Status error() && { return has_value() ? Status() : std::move(std::get<1>(state_)); }
  Status status() const { return error(); }
  // See Status::IgnoreError.
  void IgnoreError() const {}

  template <typename U>
  T value_or(U&& fallback) const& {
    return has_value() ? std::get<0>(state_) : static_cast<T>(std::forward<U>(fallback));
  }

 private:
  T& Checked() {
    if (!has_value()) AbortOnBadResultAccess(std::get<1>(state_));
    return std::get<0>(state_);
  }

  static const Status& OkStatus() {
    static const Status ok;
    return ok;
  }

  std::variant<T, Status> state_;
};

// Result of examining a directory.
enum class Verdict : std::uint8_t {
  kCommitted,    // valid at the level that was checked
  kUncommitted,  // no marker, or a void marker
  kIncomplete,   // a pinned file is missing or short
  kCorrupt,
  kUnsupported,  // version, feature, id or limit beyond this build
  kUnreadable,   // the storage failed, or the directory has no Sealpoint file
};
SEALPOINT_EXPORT std::string_view VerdictName(Verdict verdict);
// The verdict that corresponds to an error of Checkpoint::Open or of a read.
SEALPOINT_EXPORT Verdict VerdictOf(const Status& error);

}  // namespace sealpoint

#endif  // SEALPOINT_STATUS_H_
