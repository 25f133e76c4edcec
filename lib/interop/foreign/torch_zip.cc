// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/torch_zip.h"

#include <algorithm>
#include <utility>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/others.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::uint64_t kZipEntryCost = 384;  // of memory, in bytes
constexpr std::string_view kEnd = "PK\x05\x06";
constexpr std::string_view kLocator = "PK\x06\x07";
constexpr std::string_view kEnd64 = "PK\x06\x06";
constexpr std::string_view kCentral = "PK\x01\x02";
constexpr std::string_view kLocal = "PK\x03\x04";
constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kEnd64Size = 56;
constexpr std::uint64_t kLocatorSize = 20;
constexpr std::uint64_t kCentralSize = 46;
constexpr std::uint64_t kLocalSize = 30;
constexpr std::size_t kEntriesAtOnce = 1024;  // whose headers are read together
constexpr std::uint64_t kNone16 = 0xffff;
constexpr std::uint64_t kNone32 = 0xffffffff;

bool HasParentStep(std::string_view name) {
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

Zip::Zip(std::shared_ptr<const SourceFile> file, std::uint64_t begin, std::uint64_t size)
    : file_(std::move(file)), begin_(begin), size_(size) {
  if (begin > file_->size() || size > file_->size() - begin) {
    Fail(Code::kIncomplete, file_->path(), "the file has ", file_->size(), " bytes, expected ",
         begin + size, " at least");
  }
  const DirectoryPlace place = FindDirectory();
  const std::string directory = ReadPart(place.begin, place.end - place.begin);
  std::size_t at = 0;
  std::vector<Listed> listed;
  for (std::uint64_t i = 0; i < place.count; ++i) {
    at = TakeEntry(directory, at, listed.emplace_back());
    if (listed.size() == kEntriesAtOnce || i + 1 == place.count) {
      AddEntries(std::exchange(listed, {}));
    }
  }
  if (at != directory.size()) {
    Corrupt(place.begin, StrCat("directory of the zip has ", directory.size(), " bytes, expected ",
                                at, " of ", place.count, " entries"));
  }
}

void Zip::Corrupt(std::uint64_t at, const std::string& message) const {
  throw Failure{Status(Code::kCorrupt, message).AtPath(file_->path()).AtOffset(begin_ + at)};
}

void Zip::CheckRange(std::uint64_t at, std::uint64_t size) const {
  if (at <= size_ && size <= size_ - at) return;
  Corrupt(0, StrCat("zip has ", size_, " bytes, but claims that ", size, " are at ", at));
}

std::string Zip::ReadPart(std::uint64_t at, std::uint64_t size) const {
  CheckRange(at, size);
  return file_->Read(begin_ + at, size);
}

Zip::DirectoryPlace Zip::FindDirectory() const {
  const std::uint64_t at = size_ < kEndSize ? 0 : size_ - kEndSize;
  const std::string end = size_ < kEndSize ? "" : ReadPart(at, kEndSize);
  if (!end.starts_with(kEnd)) {
    throw Failure{Status(Code::kIncomplete,
                         "no end of a zip archive; the file is truncated, or a comment follows it")
                      .AtPath(file_->path())
                      .AtOffset(begin_ + at)};
  }
  const std::uint64_t on_disk = Number(end, 8, 2);
  const DirectoryPlace place{.count = Number(end, 10, 2), .begin = Number(end, 16, 4), .end = at};
  const std::uint64_t size = Number(end, 12, 4);
  const bool needs_64 =
      on_disk == kNone16 || place.count == kNone16 || size == kNone32 || place.begin == kNone32;
  if (needs_64 || (at >= kLocatorSize && ReadPart(at - kLocatorSize, 4) == kLocator)) {
    return FindDirectory64(at);
  }
  if (Number(end, 4, 4) != 0 || on_disk != place.count || place.begin + size != at) {
    Corrupt(at, "end of the zip is inconsistent");
  }
  return place;
}

Zip::DirectoryPlace Zip::FindDirectory64(std::uint64_t end) const {
  const std::string locator = end < kLocatorSize ? "" : ReadPart(end - kLocatorSize, kLocatorSize);
  if (!locator.starts_with(kLocator)) Corrupt(end, "zip64 without a locator of its end");
  const std::uint64_t at = Number(locator, 8, 8);
  const std::string record = ReadPart(at, kEnd64Size);
  if (!record.starts_with(kEnd64)) Corrupt(at, "zip64 without its end");
  const DirectoryPlace place{
      .count = Number(record, 32, 8), .begin = Number(record, 48, 8), .end = at};
  const std::uint64_t size = Number(record, 40, 8);
  const bool fits = place.begin <= at && at - place.begin == size;
  if (Number(record, 24, 8) != place.count || !fits) {
    Corrupt(at, "end of the zip64 is inconsistent");
  }
  return place;
}

// Returns where the next one begins.
std::size_t Zip::TakeEntry(std::string_view directory, std::size_t at, Listed& listed) const {
  const std::string_view fixed = directory.substr(std::min(at, directory.size()), kCentralSize);
  if (fixed.size() < kCentralSize || !fixed.starts_with(kCentral)) {
    Corrupt(at, "directory of the zip has no entry where one is expected");
  }
  const std::size_t name_size = Number(fixed, 28, 2);
  const std::size_t extra_size = Number(fixed, 30, 2);
  const std::size_t end = at + kCentralSize + name_size + extra_size + Number(fixed, 32, 2);
  if (end > directory.size()) Corrupt(at, "directory of the zip ends within an entry");
  Entry entry{.name = std::string(directory.substr(at + kCentralSize, name_size)),
              .begin = 0,
              .size = 0,
              .crc = std::nullopt,
              .how = ""};
  const std::uint64_t method = Number(fixed, 10, 2);
  if (method != 0) entry.how = StrCat("compressed by method ", method);
  if ((Number(fixed, 8, 2) & 1) != 0) entry.how = "encrypted";
  std::array<std::uint64_t, 3> wide = {Number(fixed, 24, 4), Number(fixed, 20, 4),
                                       Number(fixed, 42, 4)};
  TakeWide(directory.substr(at + kCentralSize + name_size, extra_size), entry.name, wide);
  const auto [size, stored, header] = wide;
  const std::string shown = Printable(entry.name);
  if (size != stored && entry.how.empty()) {
    Corrupt(at, StrCat("entry '", shown, "' has ", size, " bytes, of which ", stored,
                       " are stored, expected the same"));
  }
  if (entry.name.starts_with('/') || HasParentStep(entry.name)) {
    Corrupt(0, StrCat("entry of the zip is named '", shown, "', expected a path within it"));
  }
  file_->budget().Add(kZipEntryCost + CostOfText(entry.name), file_->path());
  const auto crc = static_cast<std::uint32_t>(Number(fixed, 16, 4));
  if (crc != 0 || size == 0) entry.crc = crc;
  entry.size = size;
  listed = {.entry = std::move(entry), .header = header, .stored = stored};
  return end;
}

void Zip::AddEntries(std::vector<Listed> listed) {
  std::vector<std::uint64_t> offsets;
  for (const auto& [entry, header, stored] : listed) {
    CheckRange(header, kLocalSize);
    offsets.push_back(begin_ + header);
  }
  const std::string locals = file_->ReadEach(offsets, kLocalSize);
  std::string_view local = locals;
  for (Listed& one : listed) {
    one.entry.begin = BeginOf(one, local.substr(0, kLocalSize));
    local.remove_prefix(kLocalSize);
    const auto [added, is_new] = entries_.try_emplace(one.entry.name, std::move(one.entry));
    if (!is_new) {
      Corrupt(0, StrCat("two entries of the zip are named '", Printable(added->first), "'"));
    }
  }
}

// Those of the three numbers that do not fit 32 bits are in the extra field.
void Zip::TakeWide(std::string_view extra, const std::string& name,
                   std::array<std::uint64_t, 3>& values) const {
  if (std::ranges::find(values, kNone32) == values.end()) return;
  while (extra.size() >= 4) {
    const std::uint64_t kind = Number(extra, 0, 2);
    const std::size_t length = Number(extra, 2, 2);
    if (kind != 1) {
      extra.remove_prefix(std::min(4 + length, extra.size()));
      continue;
    }
    std::string_view body = extra.substr(4, length);
    for (std::uint64_t& value : values) {
      if (value != kNone32 || body.size() < 8) continue;
      value = Number(body, 0, 8);
      body.remove_prefix(8);
    }
    return;
  }
  Corrupt(0, StrCat("entry '", Printable(name), "' of the zip64 lacks its 64-bit sizes"));
}

std::uint64_t Zip::BeginOf(const Listed& listed, std::string_view local) {
  const auto& [entry, header, size] = listed;
  if (!local.starts_with(kLocal)) {
    Corrupt(header, StrCat("entry '", Printable(entry.name), "' of the zip has no header"));
  }
  const std::uint64_t begin = header + kLocalSize + Number(local, 26, 2) + Number(local, 28, 2);
  const bool fits = begin <= size_ && size <= size_ - begin;
  if (fits) used_ += size + kLocalSize;
  if (!fits || used_ > size_) {
    Corrupt(header, StrCat("entry '", Printable(entry.name), "' has ", size, " bytes at ", begin,
                           ", the zip ", size_, " for all entries"));
  }
  return begin_ + begin;
}

const Zip::Entry* Zip::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void Zip::CheckStored(const Entry& entry) const {
  if (entry.how.empty()) return;
  Fail(Code::kUnsupported, file_->path(), "entry '", Printable(entry.name), "' of the zip is ",
       entry.how, ", expected stored without compression");
}

std::string Zip::Read(const Entry& entry) const {
  CheckStored(entry);
  std::string bytes = file_->Read(entry.begin, entry.size);
  if (entry.crc && Crc32(bytes) != *entry.crc) {
    throw Failure{Status(Code::kCorrupt,
                         StrCat("CRC-32 of '", Printable(entry.name), "' is ",
                                HexText(Crc32(bytes), 8), ", expected ", HexText(*entry.crc, 8)))
                      .AtPath(file_->path())
                      .AtOffset(entry.begin)};
  }
  return bytes;
}

TorchZip::TorchZip(std::shared_ptr<const SourceFile> file, std::uint64_t begin, std::uint64_t size,
                   bool keeps_unknown)
    : TorchArchive(file), zip_(std::move(file), begin, size) {
  constexpr std::string_view kPickle = "/data.pkl";
  const Zip::Entry* found = nullptr;
  std::size_t count = 0;
  for (const auto& [name, entry] : zip_.entries()) {
    if (!name.ends_with(kPickle)) continue;
    ++count;
    found = &entry;
  }
  if (count != 1 || std::ranges::count(found->name, '/') != 1) {
    if (const auto other = OtherZip(zip_)) Fail(*other, path());
    throw Failure{
        Status(Code::kNotACheckpoint, "a zip without data.pkl, so not a file of torch.save")
            .AtPath(path())
            .AtOffset(begin)};
  }
  prefix_ = found->name.substr(0, found->name.size() - kPickle.size() + 1);
  for (const auto& [name, entry] : zip_.entries()) {
    if (!name.starts_with(prefix_ + "code/") && !name.starts_with(prefix_ + "constants.pkl")) {
      continue;
    }
    Fail(Code::kUnsupported, path(), "a TorchScript archive, which is a program; expected a state");
  }
  const Zip::Entry* const order = zip_.Find(prefix_ + "byteorder");
  if (order != nullptr && ReadSmall(*order) != "little") {
    Fail(Code::kUnsupported, path(),
         "the bytes of its tensors are big-endian, expected little-endian");
  }
  pickle_ = ReadSmall(*found);
  pickle_begin_ = found->begin;
  decoder_ = std::make_unique<PickleDecoder>(pickle_, IsKnownValueClass, budget(), path(),
                                             pickle_begin_, keeps_unknown);
  root_ = &decoder_->Decode();
  NoteCost();
}

std::string TorchZip::ReadSmall(const Zip::Entry& entry) const {
  if (entry.size > kPickleBytesMax) {
    Fail(Code::kLimitExceeded, path(), "entry '", Printable(entry.name), "' has ", entry.size,
         " bytes, expected ", kPickleBytesMax, " at most");
  }
  budget().Add(entry.size, path());
  return zip_.Read(entry);
}

void TorchZip::FindStorage(const std::string& key, std::uint64_t size, ForeignPart& part) const {
  const Zip::Entry* const entry = zip_.Find(prefix_ + "data/" + key);
  if (entry == nullptr || entry->size != size) {
    Fail(Code::kCorrupt, path(), "storage '", Printable(key), "' has ",
         entry == nullptr ? "none" : StrCat(entry->size, " bytes"), ", expected ", size);
  }
  zip_.CheckStored(*entry);
  part.entry_begin = entry->begin;
  part.entry_size = entry->size;
  part.entry_name = entry->name;
  part.crc = entry->crc;
}

std::vector<TorchZip::Digest> TorchZip::Digests() const {
  std::vector<Digest> digests;
  for (const auto& [name, entry] : zip_.entries()) {
    if (name.starts_with(prefix_ + "data/") || name.starts_with(prefix_ + "data.pkl")) {
      digests.emplace_back(name.substr(prefix_.size()), entry.size, entry.crc);
    }
  }
  std::ranges::sort(digests);
  return digests;
}

}  // namespace sealpoint::internal::foreign
