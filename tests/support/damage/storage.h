// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DAMAGE_STORAGE_H_
#define SEALPOINT_TESTS_SUPPORT_DAMAGE_STORAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "sealpoint/bytes.h"
#include "sealpoint/storage.h"

namespace sealpoint::testing {

// What a directory entry is.
struct DamagedEntry {
  EntryKind kind = EntryKind::kFile;
  Bytes bytes{};         // of a file
  std::string target{};  // of a link: another name of the directory, there or not
};
using DamagedFiles = std::map<std::string, DamagedEntry, std::less<>>;

DamagedFiles AsDamagedFiles(const std::map<std::string, Bytes>& files);

// One read-only directory, "ckpt", in memory, whose bytes may be changed between two uses. Nothing
// is copied, so that hundreds of thousands of damages can be checked.
class DamageStorage final : public Storage {
 public:
  static constexpr const char* kPath = "ckpt";

  explicit DamageStorage(DamagedFiles files) : files_(std::move(files)) {}

  DamagedFiles& files() { return files_; }
  Bytes& bytes(const std::string& name) { return files_.at(name).bytes; }

  // Called before each read of a file, with the number of reads of it so far; may change the bytes.
  std::function<void(const std::string& name, std::uint64_t read_count)> before_read;

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;
  Status CreateDirectories(std::string_view path) override;

 private:
  class File;
  class Folder;

  DamagedFiles files_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DAMAGE_STORAGE_H_
