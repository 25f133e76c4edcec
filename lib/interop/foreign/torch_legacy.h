// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_LEGACY_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_LEGACY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/pickle.h"
#include "lib/interop/foreign/torch_archive.h"

namespace sealpoint::internal::foreign {

// How files of torch.save begin: since 1.6, and before, the pickle of a number of 10 bytes.
inline constexpr std::string_view kTorchZip = "PK\x03\x04";
inline constexpr std::string_view kTorchLegacy{
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15};

// A torch.save file from before version 1.6: five pickles in sequence, followed by the storages.
// The pickles are a magic number, the format version, machine properties, the value, and the keys
// of the storages in file order. Each storage is a count of elements in 8 bytes and its bytes. The
// length of a pickle is not stored.
class TorchLegacy : public TorchArchive {
 public:
  // The file begins with kTorchLegacy. Throws as the decoder does; Corrupt (the pickles contradict
  // themselves or the file), Incomplete (truncated), Unsupported (another version; big-endian).
  explicit TorchLegacy(const std::shared_ptr<const SourceFile>& file);
  ~TorchLegacy() override;

  const Pickled& root() const override;
  std::uint64_t pickle_begin() const override { return pickle_begin_; }
  std::uint64_t pickle_size() const override { return pickle_size_; }

 private:
  struct Decoded;
  enum class Classes : bool { kNone, kAll };

  void FindStorage(const std::string& key, std::uint64_t size, ForeignPart& part) const override;
  std::unique_ptr<Decoded> Next(Classes classes);
  void CheckMachine(const Pickled& machine) const;
  void PlaceAll(const Pickled& keys);
  void PlaceOne(const std::string& key);
  [[noreturn]] void Corrupt(const std::string& message) const;
  [[noreturn]] void CutOff(std::uint64_t expected) const;

  std::uint64_t at_ = kTorchLegacy.size();
  std::uint64_t pickle_begin_ = 0;
  std::uint64_t pickle_size_ = 0;
  std::unique_ptr<Decoded> value_;
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
  };
  std::map<std::string, Place, std::less<>> places_;  // of storages, in bytes
};

// Opens a torch.save file of any version. Null if the file begins like neither form. Throws as the
// archives do.
std::unique_ptr<TorchArchive> OpenTorchArchive(const std::shared_ptr<const SourceFile>& file);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_TORCH_LEGACY_H_
