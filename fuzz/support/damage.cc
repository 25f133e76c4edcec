// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/damage.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fuzz/support/target.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/reseal.h"

namespace sealpoint::fuzz {
namespace {

using testing::Seals;

constexpr std::size_t kFileMax = 64 * kKiB;
constexpr std::size_t kDamagesMax = 64;

struct Choice {
  std::map<std::string, Bytes> files;
  testing::CorpusContent content;
  Seals seals;
};

// The good entries that are small and have all of their files under their own names.
const std::vector<Choice>& Choices() {
  static const std::vector<Choice> choices = [] {
    std::vector<Choice> found;
    const testing::Corpus corpus = testing::BuildCorpus();
    for (const testing::CorpusEntry& entry : corpus.entries()) {
      const auto is_large = [](const auto& file) { return file.second.size() > kFileMax; };
      if (!entry.name.starts_with("good-") || !entry.links.empty() || !entry.is_alone) continue;
      if (std::ranges::any_of(entry.container.files, is_large)) continue;
      found.push_back({entry.container.files, entry.content, FindSeals(entry.container)});
    }
    return found;
  }();
  return choices;
}

struct Damage {
  unsigned action = 0;
  unsigned file = 0;
  unsigned part = 0;
  std::uint64_t offset = 0;
  std::uint64_t value = 0;
};

Damage TakeDamage(InputReader& input) {
  Damage damage{.action = input.Take8() % 8u};
  const unsigned place = input.Take8();
  damage.file = place & 15;
  damage.part = place >> 4;
  damage.offset = input.Take8();
  damage.offset |= static_cast<std::uint64_t>(input.Take8()) << 8;
  damage.value = input.Take32();
  return damage;
}

// The offset at which a part of a blob begins; 0 for other files.
std::uint64_t BeginOf(const Seals& seals, const std::string& name, unsigned part) {
  for (const Seals::Blob& blob : seals.blobs) {
    if (blob.name != name) continue;
    const internal::format::BlobSections& at = blob.sections;
    const std::uint64_t begins[] = {0, at.table, at.records, at.manifest, at.trailer};
    return begins[part % std::size(begins)];
  }
  return 0;
}

void PutBytes(Bytes& file, std::uint64_t offset, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count && offset + i < file.size(); ++i) {
    file[offset + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

// Returns true if the file is to be removed.
bool Apply(const Damage& damage, std::uint64_t offset, Bytes& file) {
  const std::uint64_t value = damage.value;
  switch (damage.action) {
    case 0:
      PutBytes(file, offset, value, 1);
      break;
    case 1:
      PutBytes(file, offset, value, 2);
      break;
    case 2:
      PutBytes(file, offset, value, 4);
      break;
    case 3:  // the high half of 64 bits follows from the sign
      PutBytes(file, offset, value | (value >> 31 != 0 ? ~std::uint64_t{0} << 32 : 0), 8);
      break;
    case 4:
      if (offset < file.size()) file[offset] ^= std::byte{1} << (value % 8);
      break;
    case 5:  // copied from elsewhere in the file
      for (std::uint64_t i = 0; i < (value >> 16) % 256; ++i) {
        const std::uint64_t from = (value & 0xffff) + i;
        if (std::max(from, offset + i) < file.size()) file[offset + i] = file[from];
      }
      break;
    case 6:
      file.resize(std::min<std::uint64_t>(offset, 2 * kFileMax), static_cast<std::byte>(value));
      break;
    default:
      return value % 4 == 0;  // rarely
  }
  return false;
}

std::map<std::string, Bytes> PinnedFiles(const Choice& choice) {
  std::map<std::string, Bytes> files;
  for (const std::string& name : {std::string("COMMIT"), choice.seals.index_name}) {
    files[name] = choice.files.at(name);
  }
  for (const Seals::Blob& blob : choice.seals.blobs) files[blob.name] = choice.files.at(blob.name);
  return files;
}

}  // namespace

Suspect MakeDamaged(ByteSpan bytes) {
  InputReader input(bytes);
  const Choice& choice = Choices()[input.TakeBelow(Choices().size())];
  const unsigned seals = input.Take8();
  Suspect damaged{.files = choice.files, .pinned_files = {}, .content = nullptr};
  damaged.is_one_change = seals == 0 && input.rest().size() <= 8;
  if (seals == 0) {
    damaged.pinned_files = PinnedFiles(choice);
    damaged.content = &choice.content;
  }
  std::vector<std::string> removed;
  for (std::size_t i = 0; i < kDamagesMax && !input.empty(); ++i) {
    const Damage damage = TakeDamage(input);
    auto file = damaged.files.begin();
    std::advance(file, damage.file % damaged.files.size());
    const std::uint64_t offset = BeginOf(choice.seals, file->first, damage.part) + damage.offset;
    if (Apply(damage, offset, file->second)) removed.push_back(file->first);
  }
  if (seals != 0) Reseal(damaged.files, choice.seals, seals);
  for (const std::string& name : removed) damaged.files.erase(name);
  return damaged;
}

std::size_t DamagedKindCount() { return Choices().size(); }

}  // namespace sealpoint::fuzz
