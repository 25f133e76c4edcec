// SPDX-License-Identifier: Apache-2.0
//
// Deltas (spec/delta.md), good and bad, and the checkpoints beside them that are their bases. The
// change lists and their frames are written by hand.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "lib/format/marker.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/conformance/stored_chunks.h"
#include "tests/conformance/transcribe.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

constexpr std::uint64_t kOtherCodecsBit = std::uint64_t{1} << 2;
constexpr std::uint64_t kDeltaBit = std::uint64_t{1} << 3;
constexpr auto kChanges = static_cast<Codec>(4);
constexpr std::uint64_t kElements = 1024;  // of "bias"
constexpr std::uint8_t kGapStep = 255;

// The changes of some elements: their bytes, by the number of the element.
using Changes = std::map<std::uint64_t, Bytes>;

// A change list, each of its sections a block of the frame.
struct ChangeList {
  std::uint32_t entry_count = 0;
  std::uint32_t gap_bytes = 0;
  Bytes gaps;
  std::vector<Bytes> planes;

  std::uint64_t size() const {
    std::uint64_t total = 8 + gaps.size();
    for (const Bytes& plane : planes) total += plane.size();
    return total;
  }
};

ChangeList MakeList(const Changes& changes) {
  ChangeList list{.entry_count = static_cast<std::uint32_t>(changes.size())};
  std::uint64_t next = 0;
  for (const auto& [element, change] : changes) {
    for (next = element - next; next >= kGapStep; next -= kGapStep)
      list.gaps.push_back(std::byte{kGapStep});
    list.gaps.push_back(static_cast<std::byte>(next));
    next = element + 1;
    list.planes.resize(change.size());
    for (std::size_t i = 0; i < change.size(); ++i) list.planes[i].push_back(change[i]);
  }
  list.gap_bytes = static_cast<std::uint32_t>(list.gaps.size());
  return list;
}

void AppendSection(Bytes& frame, const Bytes& section, bool is_last) {
  const bool is_run = std::ranges::all_of(section, [&](std::byte b) { return b == section[0]; });
  if (is_run) {
    AppendRunBlock(frame, section.size(), is_last, section[0]);
  } else {
    AppendPlainBlock(frame, section, is_last);
  }
}

// What the frame of a list says of itself. Sizes are in bytes.
struct FrameChoice {
  std::uint64_t declared_more = 0;
  std::uint8_t descriptor = kContentSizeOf4Bytes | kSingleSegment;
  Bytes before_size;
};

Bytes FrameOf(const ChangeList& list, const FrameChoice& choice = {}) {
  Bytes frame = FrameHeader({choice.descriptor});
  frame.insert(frame.end(), choice.before_size.begin(), choice.before_size.end());
  if (choice.descriptor & kContentSizeOf4Bytes)
    AppendLe(frame, list.size() + choice.declared_more, 4);
  Bytes counts;
  AppendLe(counts, list.entry_count, 4);
  AppendLe(counts, list.gap_bytes, 4);
  AppendPlainBlock(frame, counts, list.gaps.empty());
  if (!list.gaps.empty()) AppendSection(frame, list.gaps, list.planes.empty());
  for (std::size_t i = 0; i < list.planes.size(); ++i) {
    AppendSection(frame, list.planes[i], i + 1 == list.planes.size());
  }
  return frame;
}

StoredChunk Changed(const Changes& changes) { return {kChanges, FrameOf(MakeList(changes))}; }
StoredChunk Unchanged() { return {kChanges, {}}; }

Bytes Combine(Bytes bytes, const Changes& changes, std::uint64_t first_element = 0) {
  for (const auto& [element, change] : changes) {
    for (std::size_t i = 0; i < change.size(); ++i) {
      bytes[(first_element + element) * change.size() + i] ^= change[i];
    }
  }
  return bytes;
}

std::array<std::uint8_t, 16> AsArray(const std::array<std::byte, 16>& bytes) {
  std::array<std::uint8_t, 16> array{};
  std::memcpy(array.data(), bytes.data(), array.size());
  return array;
}

// A checkpoint beside the entries, named as a saver does.
std::string NameOfBase(const MiniSpec& spec) {
  const std::string step = std::to_string(spec.step);
  return "step-" + std::string(12 - step.size(), '0') + step + "-" +
         spec.attempt.ToHex().substr(0, 8);
}

HostileBase PinOf(const CorpusEntry& base, std::uint32_t depth = 1) {
  return {.attempt = AsArray(base.spec.attempt.bytes),
          .index_digest =
              AsArray(ComputeDigest(base.container.files.at(base.container.index_name)).bytes),
          .step = base.spec.step,
          .depth = depth};
}

// Makes a spec a delta. The bits are those of the codecs and of deltas.
void SetBase(MiniSpec& spec, const std::optional<HostileBase>& base,
             std::uint64_t bits = kOtherCodecsBit | kDeltaBit) {
  spec.hooks.blob_header = [=](int, format::FileHeader& header) {
    header.features.incompat = bits;
  };
  spec.hooks.index_header = [=](format::FileHeader& header) { header.features.incompat = bits; };
  spec.hooks.marker = [=](format::Marker& marker) { marker.features.incompat = bits; };
  spec.hooks.index_bytes = EditIndex([base](HostileMetadata& metadata) { metadata.base = base; });
}

MiniTensor WholeTensor(std::string name, DType dtype, const Shape& shape, const Bytes& bytes) {
  return CutTensor(std::move(name), dtype, shape, bytes, {Region::Whole(shape)});
}

// What the base holds. "weight" is cut by columns into two blobs; its chunks are not those of the
// deltas.
Bytes BaseBytesOf(std::uint64_t seed, std::uint64_t size) { return NoiseBytes(200 + seed, size); }
MiniSpec SpecOfBase(std::uint8_t attempt = 0x55) {
  MiniSpec spec;
  spec.attempt = MiniSpec::MakeId(attempt);
  spec.step = 3;
  const Shape square = {64, 64};
  spec.tensors = {
      WholeTensor("bias", DType::kF32, {kElements}, BaseBytesOf(0, 4 * kElements)),
      WholeTensor("mask", DType::kUInt8, {4096}, BaseBytesOf(1, 4096)),
      WholeTensor("moments", DType::kF64, {512}, BaseBytesOf(2, 4096)),
      WholeTensor("scalar", DType::kInt64, {}, BaseBytesOf(3, 8)),
      CutTensor("weight", DType::kBf16, square, BaseBytesOf(4, 8192),
                {Region::Of({{0, 0}, {64, 40}}), Region::Of({{0, 40}, {64, 24}})}, {0, 1})};
  spec.objects = {{.name = "rng", .bytes = BaseBytesOf(5, 100)}};
  return spec;
}

Bytes Value(std::initializer_list<std::uint8_t> bytes) {
  Bytes value;
  for (const std::uint8_t b : bytes) value.push_back(std::byte{b});
  return value;
}

// Gaps of no element, of more than 255 and of a multiple of it; the first and the last element.
Changes ChangesOfBias() {
  return {{0, Value({1, 2, 3, 4})},
          {1, Value({0, 0, 0, 0})},
          {512, Value({0, 0, 0, 128})},
          {1023, Value({255, 0, 1, 0})}};
}
Changes ChangesOfWeight() {
  Changes changes;
  for (std::uint64_t i = 3; i < 2048; i += 97)
    changes[i] = Value({1, static_cast<std::uint8_t>(i % 3)});
  return changes;
}
// A list that is longer than the chunk, and stored in fewer bytes.
Changes ChangesOfMoments() {
  Changes changes;
  for (std::uint64_t i = 0; i < 512; ++i) changes[i] = Value({1, 0, 0, 0, 0, 0, 0, 2});
  return changes;
}

// All that a delta may hold: changed, unchanged and plain chunks, tensors that the base has
// otherwise or not at all, an object.
MiniSpec SpecOfDelta(const HostileBase& base) {
  MiniSpec spec;
  spec.tensors = {
      WholeTensor("added", DType::kF32, {3}, BaseBytesOf(9, 12)),
      WholeTensor("bias", DType::kF32, {kElements},
                  Combine(BaseBytesOf(0, 4 * kElements), ChangesOfBias())),
      WholeTensor("mask", DType::kUInt8, {4096}, BaseBytesOf(8, 4096)),
      WholeTensor("moments", DType::kF64, {512}, Combine(BaseBytesOf(2, 4096), ChangesOfMoments())),
      WholeTensor("scalar", DType::kInt64, {}, BaseBytesOf(3, 8)),
      WholeTensor("weight", DType::kBf16, {64, 64},
                  Combine(BaseBytesOf(4, 8192), ChangesOfWeight(), 2048))};
  spec.objects = {{.name = "rng", .bytes = BaseBytesOf(7, 90)}};
  StoreChunks(spec, 0,
              {{1, Changed(ChangesOfBias())},
               {3, Changed(ChangesOfMoments())},
               {4, Unchanged()},
               {5, Unchanged()},
               {6, Changed(ChangesOfWeight())}});
  SetBase(spec, base);
  return spec;
}

// A delta of "bias" alone, whose one chunk is stored so; `change` has the last word.
CorpusEntry& AddSmall(Corpus& corpus, std::string name, const std::optional<HostileBase>& base,
                      StoredChunk chunk, const std::function<void(MiniSpec&)>& change = {}) {
  MiniSpec spec;
  spec.tensors = {WholeTensor("bias", DType::kF32, {kElements},
                              Combine(BaseBytesOf(0, 4 * kElements), ChangesOfBias()))};
  StoreChunks(spec, 0, {{0, std::move(chunk)}});
  if (base) SetBase(spec, base);
  if (change) change(spec);
  CorpusEntry& entry = corpus.Add(std::move(name), spec);
  entry.is_alone = false;
  return entry;
}

std::function<void(std::vector<format::ChunkRecord>&)> ChangeRecord(
    const std::function<void(format::ChunkRecord&)>& change) {
  return [change](std::vector<format::ChunkRecord>& records) { change(records[0]); };
}

// Behind what StoreChunks says of the records.
void EditRecords(MiniSpec& spec,
                 const std::function<void(std::vector<format::ChunkRecord>&)>& change) {
  const auto before = spec.hooks.records;
  spec.hooks.records = [before, change](int blob, std::vector<format::ChunkRecord>& records) {
    before(blob, records);
    change(records);
  };
}

CorpusEntry& AddBase(Corpus& corpus, const MiniSpec& spec) {
  CorpusEntry& base = corpus.Add(NameOfBase(spec), spec);
  base.is_alone = false;
  return base;
}

void AddGoodDeltas(Corpus& corpus, const CorpusEntry& base) {
  corpus.Add("good-delta", SpecOfDelta(PinOf(base))).is_alone = false;

  MiniSpec first = SpecOfDelta(PinOf(base));
  first.attempt = MiniSpec::MakeId(0xd1);
  first.step = 5;
  const CorpusEntry& delta = AddBase(corpus, first);
  MiniSpec second = SpecOfDelta(PinOf(delta, 2));
  second.tensors[1] = WholeTensor("bias", DType::kF32, {kElements}, BaseBytesOf(0, 4 * kElements));
  second.tensors[3] = WholeTensor("moments", DType::kF64, {512}, BaseBytesOf(2, 4096));
  second.has_fingerprints = true;
  second.tensors[5] = WholeTensor("weight", DType::kBf16, {64, 64}, BaseBytesOf(4, 8192));
  corpus.Add("good-delta_of_a_delta", second).is_alone = false;

  MiniSpec nothing = SpecOfBase(0xa7);
  nothing.objects.clear();
  nothing.tensors[4] = WholeTensor("weight", DType::kBf16, {64, 64}, BaseBytesOf(4, 8192));
  std::map<std::size_t, StoredChunk> unchanged;
  for (std::size_t i = 0; i < 6; ++i) unchanged[i] = Unchanged();
  StoreChunks(nothing, 0, unchanged);
  SetBase(nothing, PinOf(base));
  corpus.Add("good-delta_without_a_change", nothing).is_alone = false;
}

// Bases that are not those that they were.
void AddDamagedBases(Corpus& corpus) {
  const auto add = [&corpus](std::uint8_t attempt, const auto& damage) {
    CorpusEntry& base = AddBase(corpus, SpecOfBase(attempt));
    const HostileBase pin = PinOf(base);
    damage(base.container);
    return pin;
  };
  const HostileBase uncommitted =
      add(0x56, [](MiniContainer& files) { files.files.erase("COMMIT"); });
  AddSmall(corpus, "bad-R-DLT-03-uncommitted_base", uncommitted, Changed(ChangesOfBias()));
  const HostileBase barred =
      add(0x57, [](MiniContainer& files) { files.marker() = VoidMarker(0x99); });
  AddSmall(corpus, "bad-R-DLT-03-void_base", barred, Changed(ChangesOfBias()));
  const HostileBase missing =
      add(0x58, [](MiniContainer& files) { files.files.erase(FileNameOf("02.blob")); });
  AddSmall(corpus, "bad-R-BLB-01-blob_of_the_base", missing, Changed(ChangesOfBias()));
  const HostileBase changed = add(
      0x59, [](MiniContainer& files) { files.index()[files.index().size() - 1] ^= std::byte{1}; });
  AddSmall(corpus, "bad-R-MRK-06-index_of_the_base", changed, Changed(ChangesOfBias()));
  const HostileBase damaged = add(0x5a, [](MiniContainer& files) {
    files.blob(0)[files.blobs.at(0).records[0].offset] ^= std::byte{1};
  });
  AddSmall(corpus, "bad-R-CHK-02-chunk_of_the_base", damaged, Changed(ChangesOfBias()));
  AddSmall(corpus, "good-delta_beside_damage_of_the_base", damaged, Changed(ChangesOfBias()),
           [](MiniSpec& spec) { StoreChunks(spec, 0, {}); });
}

void AddBadBases(Corpus& corpus, const CorpusEntry& base) {
  const HostileBase good = PinOf(base);
  const auto add = [&corpus, &good](std::string name, const auto& change) {
    HostileBase pin = good;
    change(pin);
    AddSmall(corpus, std::move(name), pin, Changed(ChangesOfBias()));
  };
  add("bad-R-DLT-02-no_attempt", [](HostileBase& pin) { pin.attempt = {}; });
  add("bad-R-DLT-02-no_depth", [](HostileBase& pin) { pin.depth = 0; });
  add("bad-R-DLT-02-depth_of_65", [](HostileBase& pin) { pin.depth = 65; });
  add("bad-R-DLT-03-no_base", [](HostileBase& pin) { pin.step = 4; });
  add("bad-R-DLT-03-base_without_a_step", [](HostileBase& pin) { pin.step = kNoStep; });
  add("bad-R-DLT-04-another_attempt", [](HostileBase& pin) { pin.attempt[15] ^= 1; });
  add("bad-R-DLT-04-another_index", [](HostileBase& pin) { pin.index_digest[0] ^= 1; });
  add("bad-R-DLT-04-depth_2_of_no_delta", [](HostileBase& pin) { pin.depth = 2; });
  const auto is_delta = [](const CorpusEntry& entry) { return entry.name.ends_with("-d1d1d1d1"); };
  const auto delta = std::ranges::find_if(corpus.entries(), is_delta);
  AddSmall(corpus, "bad-R-DLT-04-depth_1_of_a_delta", PinOf(*delta), Changed(ChangesOfBias()));

  const auto set = [&](const std::optional<HostileBase>& pin, std::uint64_t bits) {
    return [=](MiniSpec& spec) { SetBase(spec, pin, bits); };
  };
  AddSmall(corpus, "bad-R-DLT-01-no_base", good, Changed(ChangesOfBias()),
           set(std::nullopt, kOtherCodecsBit | kDeltaBit));
  AddSmall(corpus, "bad-R-DLT-01-without_other_codecs", good, Changed(ChangesOfBias()),
           set(good, kDeltaBit));
  AddSmall(corpus, "bad-R-IDX-03-base_without_its_bit", good, Changed(ChangesOfBias()),
           set(good, 0));
}

// Tensors that are not those of the base, and records.
void AddBadChanges(Corpus& corpus, const HostileBase& base) {
  const auto rename = [&](std::string name, const MiniTensor& tensor) {
    AddSmall(corpus, std::move(name), base, Unchanged(), [&](MiniSpec& spec) {
      spec.tensors = {tensor};
      StoreChunks(spec, 0, {{0, Unchanged()}});
    });
  };
  const Bytes bias = BaseBytesOf(0, 4 * kElements);
  rename("bad-R-DLT-05-tensor_missing", WholeTensor("new", DType::kF32, {kElements}, bias));
  rename("bad-R-DLT-05-dtype", WholeTensor("bias", DType::kInt32, {kElements}, bias));
  rename("bad-R-DLT-05-shape", WholeTensor("bias", DType::kF32, {2, kElements / 2}, bias));

  const StoredChunk list = Changed(ChangesOfBias());
  const auto edit = [&](std::string name, const StoredChunk& chunk,
                        const std::function<void(format::ChunkRecord&)>& change) {
    AddSmall(corpus, std::move(name), base, chunk,
             [&](MiniSpec& spec) { EditRecords(spec, ChangeRecord(change)); });
  };
  edit("bad-R-DLT-06-no_shorter_than_the_chunk", {kChanges, bias}, [](format::ChunkRecord&) {});
  AddSmall(corpus, "bad-R-DLT-06-long_chunk", base, list, [](MiniSpec& spec) {
    EditRecords(spec, ChangeRecord([](auto& record) { record.raw_size = (1u << 24) + 4; }));
    spec.hooks.trailer = [](int, format::Trailer& trailer) { trailer.raw_bytes = 4 * kElements; };
  });
  AddSmall(corpus, "bad-R-DLT-06-object", base, list, [](MiniSpec& spec) {
    spec.tensors.clear();
    spec.objects = {{.name = "bias", .bytes = BaseBytesOf(0, 4 * kElements)}};
    StoreChunks(spec, 0, {{0, Unchanged()}});
  });
  edit("bad-R-CHK-01-digest_of_no_bytes", Unchanged(),
       [](format::ChunkRecord& record) { record.stored_digest = {}; });
  edit("bad-R-COD-01-codec_3_of_a_delta", list,
       [](format::ChunkRecord& record) { record.codec = static_cast<Codec>(3); });
  AddSmall(corpus, "bad-R-CHK-02-changes_of_other_bytes", base,
           Changed({{7, Value({1, 1, 1, 1})}}));
  AddSmall(corpus, "bad-R-DLT-08-changes_without_a_base", std::nullopt, list);
}

void AddBadLists(Corpus& corpus, const HostileBase& base) {
  const ChangeList good = MakeList(ChangesOfBias());
  const auto add_frame = [&](const std::string& name, const Bytes& frame) {
    AddSmall(corpus, "bad-" + name, base, {kChanges, frame});
  };
  const auto add = [&](const std::string& name, const auto& change) {
    ChangeList list = good;
    change(list);
    add_frame("R-DLT-07-" + name, FrameOf(list));
  };
  add("no_entry", [](ChangeList& list) { list = {}; });
  add("more_entries_than_elements", [](ChangeList& list) {
    list.entry_count = list.gap_bytes = kElements + 1;
    list.gaps = Bytes(kElements + 1);
    list.planes.assign(4, Bytes(kElements + 1));
  });
  add("fewer_gaps_than_entries", [](ChangeList& list) {
    list.gaps = Bytes(3);
    list.gap_bytes = 3;
  });
  add("more_gaps_than_fit", [](ChangeList& list) {
    list.gaps.insert(list.gaps.begin(), 2, std::byte{kGapStep});
    list.gap_bytes += 2;
  });
  add("another_number_of_gaps", [](ChangeList& list) { list.gaps[1] = std::byte{kGapStep}; });
  add("gaps_that_end_within_one", [](ChangeList& list) {
    list.gaps = Value({0, 0, 1, 1, kGapStep});
    list.gap_bytes = 5;
  });
  add("entry_behind_the_chunk",
      [](ChangeList& list) { list.gaps.back() = static_cast<std::byte>(254); });
  add("byte_behind_the_changes", [](ChangeList& list) { list.planes.push_back(Bytes(1)); });
  add("changes_cut_off", [](ChangeList& list) { list.planes.back().pop_back(); });

  add_frame("R-COD-02-list_no_frame", Bytes(40, std::byte{'x'}));
  constexpr std::uint8_t kWindowOf1KiB = 0;
  constexpr std::uint8_t kWindowOf2KiB = 1 << 3;
  add_frame("R-DLT-07-no_content_size",
            FrameOf(good, {.descriptor = 0, .before_size = Value({kWindowOf1KiB})}));
  add_frame("R-COD-05-list_window", FrameOf(good, {.descriptor = kContentSizeOf4Bytes,
                                                   .before_size = Value({kWindowOf2KiB})}));
  add_frame(
      "R-COD-04-list_dictionary",
      FrameOf(good, {.descriptor = kContentSizeOf4Bytes | kSingleSegment | kDictionaryIdOf1Byte,
                     .before_size = Value({0})}));
  add_frame("R-COD-07-list_short_content", FrameOf(good, {.declared_more = 1}));
  add_frame("R-DLT-07-content_size_beyond_any_list",
            FrameOf(good, {.declared_more = std::uint64_t{1} << 31}));
  Bytes second = FrameOf(good);
  const Bytes empty = FrameHeader({kSingleSegment, 0, 1, 0, 0});
  second.insert(second.end(), empty.begin(), empty.end());
  add_frame("R-COD-06-list_second_frame", second);
  Bytes cut = FrameOf(good);
  cut.pop_back();
  add_frame("R-COD-06-list_cut_frame", cut);
}

}  // namespace

void AddDeltas(Corpus& corpus) {
  const CorpusEntry& base = AddBase(corpus, SpecOfBase());
  AddGoodDeltas(corpus, base);
  AddDamagedBases(corpus);
  AddBadBases(corpus, base);
  AddBadChanges(corpus, PinOf(base));
  AddBadLists(corpus, PinOf(base));

  HostileBase absent = PinOf(base);
  absent.step = 4;
  MiniSpec spec = SpecOfDelta(absent);
  CorpusEntry& several = corpus.Add("several-no_base_and_chunks", spec);
  several.is_alone = false;
  Bytes& blob = several.container.blob(0);
  const std::vector<format::ChunkRecord>& records = several.container.blobs.at(0).records;
  blob[records[1].offset] ^= std::byte{1};  // of codec 4
  blob[records[2].offset] ^= std::byte{1};  // plain
}

}  // namespace sealpoint::testing
