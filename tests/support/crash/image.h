// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CRASH_IMAGE_H_
#define SEALPOINT_TESTS_SUPPORT_CRASH_IMAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "sealpoint/bytes.h"

namespace sealpoint::testing {

// A hash of good quality to distinguish images: XXH3, cut to 64 bits.
std::uint64_t HashOf(ByteSpan bytes);
// Order matters.
std::uint64_t MixHashes(std::uint64_t a, std::uint64_t b);

// The bytes of a file, hashed once.
struct CrashContent {
  explicit CrashContent(Bytes content) : bytes(std::move(content)), hash(HashOf(bytes)) {}
  Bytes bytes;
  std::uint64_t hash;
};
using CrashContentPtr = std::shared_ptr<const CrashContent>;

// The contribution of a file, under this name or path, to the hash of its directory or image, which
// is the sum of all contributions.
std::uint64_t HashEntry(std::uint64_t name_hash, const CrashContent& content);

// One directory, without those below it.
struct CrashFolder {
  std::map<std::string, CrashContentPtr, std::less<>> files{};
  std::uint64_t hash() const;
};

// The content of the disk after a crash: a value from which a CrashDisk can start again.
struct CrashImage {
  // By path without leading and trailing slashes; "" is the root and always there.
  std::map<std::string, CrashFolder, std::less<>> folders{{"", {}}};
  // The content of an object store: a disk that starts from it is one, and a folder is there if it
  // has a file in it or below.
  bool is_bucket = false;

  // Adds a file, with the folders that it is in.
  void Add(const std::string& path, CrashContentPtr content);
  const CrashFolder* Find(std::string_view path) const;
  // One line per directory and file, for messages: path, size, hash.
  std::string Describe() const;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CRASH_IMAGE_H_
