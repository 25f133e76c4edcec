// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/image.h"

#include <cstring>
#include <utility>

#include "sealpoint/digest.h"

namespace sealpoint::testing {

std::uint64_t HashOf(ByteSpan bytes) {
  const Digest digest = ComputeDigest(bytes);
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest.bytes.data(), sizeof(hash));
  return hash;
}

std::uint64_t MixHashes(std::uint64_t a, std::uint64_t b) {
  // The finalizer of splitmix64 over a weighted sum.
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t HashEntry(std::uint64_t name_hash, const CrashContent& content) {
  return MixHashes(name_hash, content.hash);
}

std::uint64_t CrashFolder::hash() const {
  std::uint64_t sum = 0;
  for (const auto& [name, content] : files) sum += HashEntry(HashOf(AsBytes(name)), *content);
  return sum;
}

const CrashFolder* CrashImage::Find(std::string_view path) const {
  const auto found = folders.find(path);
  return found == folders.end() ? nullptr : &found->second;
}

void CrashImage::Add(const std::string& path, CrashContentPtr content) {
  std::size_t slash = 0;
  while ((slash = path.find('/', slash + 1)) != std::string::npos) {
    folders.try_emplace(path.substr(0, slash));
  }
  const auto last = path.rfind('/');
  const bool is_at_root = last == std::string::npos;
  folders[is_at_root ? "" : path.substr(0, last)].files[path.substr(last + 1)] = std::move(content);
}

std::string CrashImage::Describe() const {
  std::string out;
  for (const auto& [path, folder] : folders) {
    out += "  /" + path + "\n";
    for (const auto& [name, content] : folder.files) {
      out += "    " + name + " " + std::to_string(content->bytes.size()) + " bytes, hash " +
             std::to_string(content->hash) + "\n";
    }
  }
  return out;
}

}  // namespace sealpoint::testing
