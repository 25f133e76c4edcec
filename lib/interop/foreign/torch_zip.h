// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_ZIP_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_ZIP_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/pickle.h"
#include "lib/interop/foreign/torch_archive.h"

namespace sealpoint::internal::foreign {

// A zip archive that is a range of a file. Entries are stored as they are, or named as they are.
class Zip {
 public:
  struct Entry {
    std::string name;
    std::uint64_t begin = 0;  // of its bytes, in the file
    std::uint64_t size = 0;
    std::optional<std::uint32_t> crc;  // empty if its writer computed none
    std::string how;                   // other than as they are
  };

  // Throws Corrupt, Incomplete (no end of an archive).
  Zip(std::shared_ptr<const SourceFile> file, std::uint64_t begin, std::uint64_t size);

  const SourceFile& file() const { return *file_; }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* Find(std::string_view name) const;
  // Throws Corrupt (the CRC-32), Unsupported (compressed or encrypted).
  std::string Read(const Entry& entry) const;
  void CheckStored(const Entry& entry) const;

 private:
  struct DirectoryPlace {
    std::uint64_t count = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  DirectoryPlace FindDirectory() const;
  DirectoryPlace FindDirectory64(std::uint64_t end) const;
  // An entry before it is known where its bytes begin: `header` and its `stored` size are.
  struct Listed {
    Entry entry;
    std::uint64_t header = 0;
    std::uint64_t stored = 0;
  };
  std::size_t TakeEntry(std::string_view directory, std::size_t at, Listed& listed) const;
  void AddEntries(std::vector<Listed> listed);
  void TakeWide(std::string_view extra, const std::string& name,
                std::array<std::uint64_t, 3>& values) const;
  std::uint64_t BeginOf(const Listed& listed, std::string_view local);
  void CheckRange(std::uint64_t at, std::uint64_t size) const;
  std::string ReadPart(std::uint64_t at, std::uint64_t size) const;
  [[noreturn]] void Corrupt(std::uint64_t at, const std::string& message) const;

  const std::shared_ptr<const SourceFile> file_;
  const std::uint64_t begin_;
  const std::uint64_t size_;
  std::uint64_t used_ = 0;
  std::map<std::string, Entry, std::less<>> entries_;
};

// A torch.save file: a zip with a pickle and the bytes of its storages.
class TorchZip : public TorchArchive {
 public:
  // Throws as Zip and the decoder do; NotACheckpoint (another zip), Unsupported (big-endian,
  // TorchScript).
  TorchZip(std::shared_ptr<const SourceFile> file, std::uint64_t begin, std::uint64_t size,
           bool keeps_unknown);

  const Pickled& root() const override { return *root_; }
  std::uint64_t pickle_begin() const override { return pickle_begin_; }
  std::uint64_t pickle_size() const override { return pickle_.size(); }
  // Name, size and CRC-32 of pickle and storages; equal values have equal digests.
  using Digest = std::tuple<std::string, std::uint64_t, std::optional<std::uint32_t>>;
  std::vector<Digest> Digests() const;

 private:
  void FindStorage(const std::string& key, std::uint64_t size, ForeignPart& part) const override;
  std::string ReadSmall(const Zip::Entry& entry) const;

  const Zip zip_;
  std::string prefix_;
  std::string pickle_;
  std::uint64_t pickle_begin_ = 0;
  std::unique_ptr<PickleDecoder> decoder_;
  const Pickled* root_ = nullptr;
};

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_ZIP_H_
