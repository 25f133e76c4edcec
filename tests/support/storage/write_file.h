// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_WRITE_FILE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_WRITE_FILE_H_

#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/storage.h"

namespace sealpoint::testing {

// Makes a file, and its directory. The path has one.
inline void WriteFile(Storage& storage, const std::string& path, ByteSpan content) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = path.substr(0, slash);
  static_cast<void>(storage.CreateDirectories(folder));
  const auto directory = storage.OpenDirectory(folder).value();
  const auto file = directory->CreateExclusive(path.substr(slash + 1), {}).value();
  static_cast<void>(file->WriteAt(0, content));
  static_cast<void>(file->Close());
}
inline void WriteFile(Storage& storage, const std::string& path, std::string_view content) {
  WriteFile(storage, path, AsBytes(content));
}

// The content of a file.
inline Bytes ReadFile(const Storage& storage, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const auto directory = storage.OpenDirectory(path.substr(0, slash)).value();
  const auto file = directory->OpenForRead(path.substr(slash + 1), IoMode::kBuffered).value();
  Bytes content(file->size_bytes());
  static_cast<void>(file->ReadAt(0, content));
  return content;
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_WRITE_FILE_H_
