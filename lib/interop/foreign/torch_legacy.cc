// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/torch_legacy.h"

#include <algorithm>
#include <utility>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/torch_zip.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::int64_t kVersion = 1001;
constexpr std::uint64_t kFirstBytes = 64 << 10;  // read of a pickle whose end is not known
constexpr std::uint64_t kStorageCost = 384;      // of memory, in bytes
constexpr std::uint64_t kCountBytes = 8;
constexpr std::size_t kShownOfLegacy = 80;

struct Storage {
  std::string type;
  std::uint64_t count = 0;
  friend bool operator==(const Storage&, const Storage&) = default;
};

bool IsCount(const Pickled& value) { return value.is(Kind::kInt) && value.number >= 0; }

// Decodes protocol 2 also as Python 2 wrote it: its strings. Keeps what storages the value names.
class Decoder : public PickleDecoder {
 public:
  using PickleDecoder::PickleDecoder;
  const std::map<std::string, Storage, std::less<>>& storages() const { return storages_; }

 private:
  bool StepOther(unsigned char code) override {
    if (code != 'U' && code != 'T') return false;
    PushBytes(Kind::kText, TakeNumber(code == 'U' ? 1 : 4));
    return true;
  }

  Pickled* Persistent(Pickled* id) override {
    if (!id->is(Kind::kTuple)) {
      Corrupt(StrCat("pickle names a ", KindName(*id), ", expected the tuple of a storage"));
    }
    const PickledItems& items = id->parts()->items;
    const bool is_module = items.size() == 4 && items[0]->is(Kind::kText) &&
                           items[0]->text == "module" && items[1]->is(Kind::kGlobal);
    if (is_module) return items[1];  // a class of modules, with its source
    if (items.size() != 6 || !items[0]->is(Kind::kText) || items[0]->text != "storage") {
      Corrupt(StrCat("pickle names a tuple of ", items.size(),
                     ", expected the 6 values of a storage, the first one 'storage'"));
    }
    constexpr std::int64_t kCountMax = std::int64_t{1} << 62;
    if (!items[1]->is(Kind::kGlobal) || !items[2]->is(Kind::kText) || !IsCount(*items[4]) ||
        items[4]->number >= kCountMax) {
      Corrupt("pickle names a storage without a class, a key or a size");
    }
    Cost(kStorageCost);
    const Storage storage{std::string(items[1]->text),
                          static_cast<std::uint64_t>(items[4]->number)};
    const auto& known = storages_.try_emplace(std::string(items[2]->text), storage).first->second;
    if (known != storage && storage.count > 0) {
      Corrupt(StrCat("storage '", Printable(items[2]->text.substr(0, kShownOfLegacy)),
                     "' has two classes or sizes"));
    }
    if (!items[5]->is(Kind::kNone)) CheckView(*items[5], storage.count);
    Pickled* const value = Make(Kind::kPersistent);
    value->structure->items = {id, items[5]};
    return value;
  }

  // An offset and a size, in elements.
  void CheckView(const Pickled& view, std::uint64_t count) const {
    const PickledItems* const items = view.is(Kind::kTuple) ? &view.parts()->items : nullptr;
    if (items == nullptr || items->size() != 3 || !IsCount(*items->at(1)) ||
        !IsCount(*items->at(2))) {
      Corrupt(StrCat("a view of a storage is a ", KindName(view),
                     ", expected a tuple of a key, an offset and a size"));
    }
    if (CappedAdd(static_cast<std::uint64_t>(items->at(1)->number),
                  static_cast<std::uint64_t>(items->at(2)->number)) > count) {
      Corrupt(StrCat("a view ends beyond its storage of ", count, " elements"));
    }
  }

  std::map<std::string, Storage, std::less<>> storages_;
};

}  // namespace

struct TorchLegacy::Decoded {
  std::string data;
  std::unique_ptr<Decoder> decoder;
  const Pickled* root = nullptr;
};

TorchLegacy::TorchLegacy(const std::shared_ptr<const SourceFile>& file) : TorchArchive(file) {
  const auto version = Next(Classes::kNone);
  if (!version->root->is(Kind::kInt) || version->root->number != kVersion) {
    const bool is_number = version->root->is(Kind::kInt);
    Fail(Code::kUnsupported, path(), "version of the format is ",
         is_number ? std::to_string(version->root->number) : KindName(*version->root),
         ", expected ", kVersion);
  }
  CheckMachine(*Next(Classes::kNone)->root);
  pickle_begin_ = at_;
  value_ = Next(Classes::kAll);
  pickle_size_ = at_ - pickle_begin_;
  PlaceAll(*Next(Classes::kNone)->root);
  NoteCost();
}

TorchLegacy::~TorchLegacy() = default;

const Pickled& TorchLegacy::root() const { return *value_->root; }

void TorchLegacy::Corrupt(const std::string& message) const {
  throw Failure{Status(Code::kCorrupt, message).AtPath(path()).AtOffset(at_)};
}

void TorchLegacy::CutOff(std::uint64_t expected) const {
  throw Failure{Status(Code::kIncomplete, StrCat("the file has ", file().size(),
                                                 " bytes, expected ", expected, " at least"))
                    .AtPath(path())
                    .AtOffset(at_)};
}

// The pickle that begins here. What it takes more than was read, is read with it once more.
std::unique_ptr<TorchLegacy::Decoded> TorchLegacy::Next(Classes classes) {
  const bool has_all = classes == Classes::kAll;
  const std::uint64_t left = file().size() - at_;
  const std::uint64_t used = budget().used();
  std::uint64_t size = std::min(left, kFirstBytes);
  for (;;) {
    auto decoded = std::make_unique<Decoded>();
    budget().Release(budget().used() - used);
    budget().Add(size, path());
    decoded->data = file().Read(at_, size);
    const auto is_known = [has_all](std::string_view name) {
      return has_all && IsKnownValueClass(name);
    };
    decoded->decoder =
        std::make_unique<Decoder>(decoded->data, is_known, budget(), path(), at_, has_all);
    try {
      decoded->root = &decoded->decoder->Decode();
    } catch (const Failure& failure) {
      const std::uint64_t needed = decoded->decoder->needed();
      if (failure.status.code() != Code::kCorrupt || needed <= size) throw;
      if (needed > left) CutOff(CappedAdd(at_, needed));
      size = std::min(left, std::max(4 * size, needed));
      if (size > kPickleBytesMax) {
        Fail(Code::kLimitExceeded, path(), "the pickle has more than ", kPickleBytesMax, " bytes");
      }
      continue;
    }
    at_ += decoded->decoder->end();
    return decoded;
  }
}

void TorchLegacy::CheckMachine(const Pickled& machine) const {
  if (!machine.is(Kind::kMapping)) {
    Corrupt(StrCat("the third pickle is a ", KindName(machine),
                   ", expected a mapping that describes the machine"));
  }
  std::size_t count = 0;
  for (const auto& [key, value] : machine.parts()->pairs) {
    if (!key->is(Kind::kText) || key->text != "little_endian") continue;
    if (++count == 1 && value->is(Kind::kBool) && value->number == 1) continue;
    Fail(Code::kUnsupported, path(),
         "the bytes of its tensors are big-endian, expected little-endian");
  }
}

void TorchLegacy::PlaceAll(const Pickled& keys) {
  if (!keys.is(Kind::kList) || !std::ranges::all_of(keys.parts()->items, [](const Pickled* key) {
        return key->is(Kind::kText);
      })) {
    Corrupt(StrCat("the keys of the storages are in a ", KindName(keys),
                   ", expected a list of strings"));
  }
  for (const Pickled* const key : keys.parts()->items) PlaceOne(std::string(key->text));
  if (at_ != file().size()) {
    Corrupt(StrCat("the file has ", file().size(), " bytes, of which ", file().size() - at_,
                   " belong to nothing"));
  }
}

void TorchLegacy::PlaceOne(const std::string& key) {
  const auto found = value_->decoder->storages().find(key);
  const std::string shown = Printable(key.substr(0, kShownOfLegacy));
  if (places_.contains(key) || found == value_->decoder->storages().end()) {
    Corrupt(StrCat("storage '", shown, "' is there ",
                   places_.contains(key) ? "twice" : "for no tensor"));
  }
  const Storage& storage = found->second;
  const auto dtype = DTypeOfStorage(storage.type);
  if (!dtype && !IsUntypedStorage(storage.type)) {
    Fail(Code::kUnsupported, path(), "a storage is a '",
         Printable(storage.type.substr(0, kShownOfLegacy)), "', which the format lacks");
  }
  if (file().size() - at_ < kCountBytes) CutOff(at_ + kCountBytes);
  const std::uint64_t count = Number(file().Read(at_, kCountBytes), 0, kCountBytes);
  if (count != storage.count) {
    Corrupt(StrCat("storage '", shown, "' has ", count, " elements, expected ", storage.count));
  }
  const std::uint64_t size = CappedMul(count, dtype ? DTypeSizeBytes(*dtype) : 1);
  at_ += kCountBytes;
  if (size > file().size() - at_) CutOff(CappedAdd(at_, size));
  places_.emplace(key, Place{.begin = at_, .size = size});
  at_ += size;
  budget().Add(kStorageCost, path());
}

void TorchLegacy::FindStorage(const std::string& key, std::uint64_t size, ForeignPart& part) const {
  const auto found = places_.find(key);
  if (found != places_.end() && found->second.size == size) {
    part.entry_begin = found->second.begin;
    part.entry_size = size;
    part.entry_name = key;
    return;
  }
  Fail(Code::kCorrupt, path(), "storage '", Printable(key), "' has ",
       found == places_.end() ? "none" : StrCat(found->second.size, " bytes"), ", expected ", size);
}

std::unique_ptr<TorchArchive> OpenTorchArchive(const std::shared_ptr<const SourceFile>& file) {
  const std::string head =
      file->Read(0, std::min<std::uint64_t>(file->size(), kTorchLegacy.size()));
  if (head.starts_with(kTorchZip)) return std::make_unique<TorchZip>(file, 0, file->size(), true);
  return head == kTorchLegacy ? std::make_unique<TorchLegacy>(file) : nullptr;
}

}  // namespace sealpoint::internal::foreign
