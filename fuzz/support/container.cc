// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/container.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fuzz/support/edit_metadata.h"
#include "fuzz/support/target.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/transcribe.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::fuzz {
namespace {

namespace format = internal::format;

using format::ChunkRecord;
using testing::HostileMetadata;

constexpr std::size_t kFileMax = 64 * kKiB;
constexpr std::size_t kChangesMax = 32;
constexpr std::size_t kRecordsMax = 1024;

enum class Part : std::uint8_t {
  kBlobHeader,
  kPayload,
  kRecords,
  kRecordBytes,
  kGroupList,
  kManifestTables,
  kManifestBytes,
  kTrailerBytes,
  kIndexTables,
  kIndexBytes,
  kMarker,
};
static_assert(static_cast<std::size_t>(Part::kMarker) + 1 == kContainerPartCount);

// A few wrong bytes in a FlatBuffer make it a different buffer.
bool IsOfPlainFields(Part part) {
  return part != Part::kManifestBytes && part != Part::kIndexBytes;
}

struct Change {
  Part part = Part::kBlobHeader;
  unsigned blob = 0;
  InputReader choices{ByteSpan()};
};

struct Choice {
  testing::MiniSpec spec;
  testing::CorpusContent content;
  unsigned blob_count = 0;
};

// The good entries that are small.
const std::vector<Choice>& Choices() {
  static const std::vector<Choice> choices = [] {
    std::vector<Choice> found;
    const testing::Corpus corpus = testing::BuildCorpus();
    for (const testing::CorpusEntry& entry : corpus.entries()) {
      const auto is_large = [](const auto& file) { return file.second.size() > kFileMax; };
      if (!entry.name.starts_with("good-") || !entry.links.empty() || !entry.is_alone) continue;
      if (std::ranges::any_of(entry.container.files, is_large)) continue;
      found.push_back(
          {entry.spec, entry.content, static_cast<unsigned>(entry.container.blobs.size())});
    }
    return found;
  }();
  return choices;
}

void ChangeBytes(InputReader& input, Bytes& bytes) {
  const unsigned action = input.Take8() % 8;
  const std::uint64_t at = bytes.empty() ? 0 : input.Take32() % bytes.size();
  if (action == 0) {
    bytes.resize(std::min<std::uint64_t>(input.TakeNumber(bytes.size()), 2 * kFileMax));
  } else if (action == 1 && at < bytes.size()) {
    bytes[at] ^= std::byte{1} << input.Take8() % 8;
  } else if (at + 8 <= bytes.size()) {
    const std::size_t width = std::size_t{1} << action % 4;
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
    }
    value = input.TakeNumber(value);
    for (std::size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i);
  }
}

void ChangeId(InputReader& input, Id128& id) {
  const std::size_t at = input.Take8() % id.bytes.size();
  if (input.TakeBool()) {
    id = {};
  } else {
    id.bytes[at] = static_cast<std::byte>(input.Take8());
  }
}

void ChangeHeader(InputReader& input, format::FileHeader& header) {
  switch (input.Take8() % 6) {
    case 0:
      header.kind = static_cast<format::FileKind>(input.Take8() % 6);
      break;
    case 1:
      header.features.compat = input.TakeNumber(header.features.compat);
      break;
    case 2:
      header.features.incompat = input.TakeNumber(header.features.incompat);
      break;
    case 3:
      return ChangeId(input, header.id);
    case 4:
      return ChangeId(input, header.attempt);
    default:
      header.step = input.TakeNumber(header.step);
      break;
  }
}

template <typename Number>
void ChangeNumber(InputReader& input, Number& number) {
  number = static_cast<Number>(input.TakeNumber(static_cast<std::uint64_t>(number)));
}

void ChangeRecord(InputReader& input, ChunkRecord& record) {
  switch (input.Take8() % 8) {
    case 0:
      return ChangeNumber(input, record.offset);
    case 1:
      return ChangeNumber(input, record.stored_size);
    case 2:
      return ChangeNumber(input, record.raw_size);
    case 3:
      return ChangeNumber(input, record.shard);
    case 4:
      return ChangeNumber(input, record.chunk);
    case 5:
      return ChangeNumber(input, record.codec);
    case 6:
      return ChangeId(input, record.raw_digest);
    default:
      return ChangeId(input, record.stored_digest);
  }
}

void ChangeRecords(InputReader& input, std::vector<ChunkRecord>& records) {
  if (records.empty()) return static_cast<void>(records.emplace_back());
  const std::size_t i = input.TakeBelow(records.size());
  switch (input.Take8() % 8) {
    case 0:
      records.erase(records.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    case 1:
      if (records.size() < kRecordsMax) {
        records.insert(records.begin() + static_cast<std::ptrdiff_t>(i), ChunkRecord(records[i]));
      }
      break;
    case 2:
      std::swap(records[i], records[input.TakeBelow(records.size())]);
      break;
    case 3: {  // of two records, the border between their chunks
      const std::size_t next = (i + 1) % records.size();
      const std::uint32_t delta = input.Take8();
      records[i].stored_size += delta;
      records[next].stored_size -= delta;
      records[next].offset += delta;
      break;
    }
    default:
      ChangeRecord(input, records[i]);
      break;
  }
}

void RepairDigests(const Bytes& file, std::vector<ChunkRecord>& records) {
  for (ChunkRecord& record : records) {
    if (record.offset > file.size() || record.stored_size > file.size() - record.offset) continue;
    const Digest digest = ComputeDigest(ByteSpan(file).subspan(record.offset, record.stored_size));
    (record.codec == Codec::kNone ? record.raw_digest : record.stored_digest) = digest;
  }
}

void ChangeMarker(InputReader& input, format::Marker& marker) {
  switch (input.Take8() % 10) {
    case 0:
      marker.kind = static_cast<format::MarkerKind>(input.Take8() % 4);
      break;
    case 1:
      return ChangeNumber(input, marker.features.compat);
    case 2:
      return ChangeNumber(input, marker.features.incompat);
    case 3:
      return ChangeId(input, marker.attempt);
    case 4:
      return ChangeNumber(input, marker.step);
    case 5:
      return ChangeId(input, marker.parent);
    case 6:
      return ChangeNumber(input, marker.sequence);
    case 7:
      return ChangeNumber(input, marker.index_size);
    case 8:
      return ChangeNumber(input, marker.blob_count);
    default:
      return ChangeNumber(input, marker.total_bytes);
  }
}

// The changes of one input as hooks of mini_container, called after the hooks of the good
// checkpoint itself. The spec must not outlive it.
class Changer {
 public:
  Changer(std::vector<Change> changes, unsigned repairs, unsigned blob_count)
      : changes_(std::move(changes)), repairs_(repairs), blob_count_(blob_count) {}

  void Hook(testing::MiniHooks& hooks) {
    After(hooks.blob_header, [this](int blob, format::FileHeader& header) {
      Apply(Part::kBlobHeader, blob, [&](InputReader& input) { ChangeHeader(input, header); });
    });
    After(hooks.chunk_area, [this](int blob, Bytes& area) {
      Apply(Part::kPayload, blob, [&](InputReader& input) { ChangePayload(input, area); });
      payload_ = area;
    });
    After(hooks.records, [this](int blob, std::vector<ChunkRecord>& records) {
      Apply(Part::kRecords, blob, [&](InputReader& input) { ChangeRecords(input, records); });
      if (repairs_ & kRepairDigests) RepairDigests(payload_, records);
    });
    After(hooks.record_bytes, [this](int blob, Bytes& bytes) {
      Apply(Part::kRecordBytes, blob, [&](InputReader& input) { ChangeInPlace(input, bytes); });
    });
    After(hooks.group_list, [this](int blob, Bytes& bytes) {
      Apply(Part::kGroupList, blob, [&](InputReader& input) { ChangeInPlace(input, bytes); });
    });
    After(hooks.manifest_bytes, [this](int blob, Bytes& bytes) {
      Apply(Part::kManifestTables, blob, [&](InputReader& input) { ChangeManifest(input, bytes); });
      Apply(Part::kManifestBytes, blob, [&](InputReader& input) { ChangeBytes(input, bytes); });
    });
    After(hooks.trailer_bytes, [this](int blob, Bytes& bytes) {
      Apply(Part::kTrailerBytes, blob, [&](InputReader& input) { ChangeInPlace(input, bytes); });
      testing::ResealTrailer(bytes);
    });
    After(hooks.index_bytes, [this](Bytes& bytes) {
      Apply(Part::kIndexTables, 0, [&](InputReader& input) { ChangeIndex(input, bytes); });
      Apply(Part::kIndexBytes, 0, [&](InputReader& input) { ChangeBytes(input, bytes); });
    });
    After(hooks.marker, [this](format::Marker& marker) {
      Apply(Part::kMarker, 0, [&](InputReader& input) { ChangeMarker(input, marker); });
    });
  }

 private:
  template <typename Hook, typename Action>
  static void After(Hook& hook, Action action) {
    hook = [first = std::move(hook), action](auto&&... arguments) {
      if (first) first(arguments...);
      action(arguments...);
    };
  }

  template <typename Action>
  void Apply(Part part, int blob, const Action& action) {
    for (Change& change : changes_) {
      const bool is_of_blob = part >= Part::kIndexTables || blob_count_ == 0 ||
                              change.blob % blob_count_ == static_cast<unsigned>(blob);
      if (change.part == part && is_of_blob) action(change.choices);
    }
  }

  // The header in front stays.
  static void ChangePayload(InputReader& input, Bytes& area) {
    Bytes payload(area.begin() + format::kHeaderSize, area.end());
    ChangeBytes(input, payload);
    area.resize(format::kHeaderSize);
    area.insert(area.end(), payload.begin(), payload.end());
  }

  // For parts whose length is recorded elsewhere.
  static void ChangeInPlace(InputReader& input, Bytes& bytes) {
    const std::size_t size = bytes.size();
    ChangeBytes(input, bytes);
    bytes.resize(size);
  }

  void ChangeManifest(InputReader& input, Bytes& bytes) const {
    auto metadata = TryTranscribeManifest(bytes);
    if (!metadata) return;
    EditMetadata(input, *metadata);
    MendMetadata(repairs_ & kRepairMend, *metadata);
    bytes = EncodeHostileManifest(*metadata);
  }

  void ChangeIndex(InputReader& input, Bytes& bytes) const {
    auto metadata = TryTranscribeIndex(bytes);
    if (!metadata) return;
    EditMetadata(input, *metadata);
    MendMetadata(repairs_ & kRepairMend, *metadata);
    Bytes changed = EncodeHostileIndex(*metadata);
    testing::CopyPins(bytes, changed);
    bytes = std::move(changed);
  }

  std::vector<Change> changes_;
  unsigned repairs_ = 0;
  unsigned blob_count_ = 0;
  Bytes payload_;  // of the blob that is being made
};

}  // namespace

Suspect MakeContainer(ByteSpan bytes) {
  InputReader input(bytes);
  const Choice& choice = Choices()[input.TakeBelow(Choices().size())];
  const unsigned repairs = input.Take8();
  std::vector<Change> changes;
  while (!input.empty() && changes.size() < kChangesMax) {
    InputReader one = input.TakePart(kContainerChangeBytes);
    const Part part = static_cast<Part>(one.TakeBelow(kContainerPartCount));
    const unsigned blob = one.Take8();
    changes.push_back({.part = part, .blob = blob, .choices = one});
  }
  const bool is_good = changes.empty();
  const bool is_one_change = is_good || (changes.size() == 1 && IsOfPlainFields(changes[0].part));
  testing::MiniSpec spec = choice.spec;
  Changer changer(std::move(changes), repairs, choice.blob_count);
  if (!is_good) changer.Hook(spec.hooks);
  return {.files = BuildMini(spec).files,
          .pinned_files = {},
          .content = is_good ? &choice.content : nullptr,
          .is_one_change = is_one_change};
}

std::size_t ContainerKindCount() { return Choices().size(); }

}  // namespace sealpoint::fuzz
