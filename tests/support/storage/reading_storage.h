// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_READING_STORAGE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_READING_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/storage/forwarding_storage.h"

namespace sealpoint::testing {

struct ReadCall {
  std::string name;  // of the file
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  friend auto operator<=>(const ReadCall&, const ReadCall&) = default;
};

// A range that was named as one that is read soon.
struct NamedRange {
  ReadCall range;
  std::size_t reads_before = 0;  // completed until then
  friend auto operator<=>(const NamedRange&, const NamedRange&) = default;
};

// The log of a ReadingStorage, shared with all its directories and files.
struct ReadLog {
  std::vector<ReadCall> reads;     // in the order of completion
  std::vector<NamedRange> named;   // by WillRead
  std::vector<std::string> stats;  // names
  std::uint64_t skewed_bytes = 0;  // read to addresses 1 to 31 bytes behind the offset modulo 4096
  std::uint64_t open_file_count = 0;
  std::uint64_t open_file_count_max = 0;
};

// Wraps a storage, logs each read and can intervene before it.
class ReadingStorage final : public ForwardingStorage {
 public:
  // Called before each read, on the reading thread; an error is what the read returns.
  using BeforeRead = std::function<Status(const ReadCall& call)>;
  explicit ReadingStorage(std::shared_ptr<Storage> inner, BeforeRead before_read = {});
  ~ReadingStorage() override;

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;

  ReadLog log() const;  // a copy
  void ClearLog();

 private:
  struct State;
  std::shared_ptr<State> state_;
  class LoggedDirectory;
  class LoggedFile;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_READING_STORAGE_H_
