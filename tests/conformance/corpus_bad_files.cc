// SPDX-License-Identifier: Apache-2.0
//
// Directories, file headers and markers that break one rule each.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/format/fields.h"
#include "lib/format/marker.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

// Offsets in the common file header.
// And in a marker.

constexpr unsigned kIndexAndMarker = kSealIndex | kSealMarker;

CorpusEntry& AddWithout(Corpus& corpus, std::string name, const std::string& short_name) {
  CorpusEntry& entry = corpus.Add(std::move(name), BaseSpec());
  entry.container.files.erase(FileNameOf(short_name));
  return entry;
}

Change Resize(std::int64_t difference) {
  return [=](Bytes& file) {
    file.resize(static_cast<std::size_t>(static_cast<std::int64_t>(file.size()) + difference));
  };
}

// A header of another length, with the digest over that length.
Change HeaderOfLength(std::uint32_t length) {
  return [=](Bytes& file) {
    SetField(format::HeaderFields::kHeaderSize.at, length)(file);
    ResealHeader(MutableByteSpan(file).first(length));
  };
}

Change SetId(std::uint64_t offset, const Id128& id) {
  return [=](Bytes& file) { PutDigest(file, offset, Digest(id)); };
}

Change SetMarker(const format::Marker& marker) {
  return [=](Bytes& file) {
    const format::MarkerBytes bytes = format::EncodeMarker(marker);
    file.assign(bytes.begin(), bytes.end());
  };
}

// The index is cut to its header, which then says that it is longer.
void CutIndexToItsHeader(Bytes& index) {
  index.resize(format::kHeaderSize);
  SetField(format::HeaderFields::kHeaderSize.at, std::uint32_t{512})(index);
}

}  // namespace

void AddBadDirectories(Corpus& corpus) {
  CorpusEntry& foreign = corpus.Add("bad-R-DIR-05-only_foreign_names", BaseSpec());
  foreign.container.files = {{"README.md", Bytes(10, std::byte{'x'})}, {"KEEP", {}}};
  CorpusEntry& probe = corpus.Add("bad-R-DIR-05-probe_and_names_of_directories", BaseSpec());
  probe.container.files = {{format::ProbeName(OtherAttempt()), {}}};
  probe.directories = {"COMMIT", FileNameOf("01.blob")};
  AddWithout(corpus, "bad-R-MRK-01-no_marker", "COMMIT");
  CorpusEntry& link = corpus.Add("bad-R-MRK-01-link_named_as_a_blob", BaseSpec());
  link.container.files = {};
  link.links = {{FileNameOf("01.blob"), "nothing"}};
  AddWithout(corpus, "bad-R-MRK-01-link_to_nothing", "COMMIT").links = {{"COMMIT", "nothing"}};
  AddWithout(corpus, "bad-R-MRK-01-directory_named_commit", "COMMIT").directories = {"COMMIT"};
  for (const auto& [name, file] : {std::pair("bad-R-MRK-01-link_to_a_directory", "COMMIT"),
                                   std::pair("bad-R-MRK-05-link_to_a_directory", "index"),
                                   std::pair("bad-R-BLB-01-link_to_a_directory", "02.blob")}) {
    CorpusEntry& entry = AddWithout(corpus, name, file);
    entry.links = {{FileNameOf(file), "folder"}};
    entry.directories = {"folder"};
  }
  AddWithout(corpus, "bad-R-MRK-05-no_index", "index");
  AddWithout(corpus, "bad-R-MRK-05-directory_named_as_the_index", "index").directories = {
      FileNameOf("index")};
  AddWithout(corpus, "bad-R-BLB-01-no_blob", "02.blob");
  AddWithout(corpus, "bad-R-BLB-01-directory_named_as_a_blob", "02.blob").directories = {
      FileNameOf("02.blob")};
  AddWithout(corpus, "bad-R-BLB-01-link_to_nothing", "02.blob").links = {
      {FileNameOf("02.blob"), "nothing"}};
  AddChanged(corpus, "bad-R-MRK-05-short_index", "index", Resize(-1), 0);
  AddChanged(corpus, "bad-R-MRK-08-longer_index", "index", Resize(1), 0);
  AddChanged(corpus, "bad-R-BLB-01-short_blob", "01.blob", Resize(-1), 0);
  AddChanged(corpus, "bad-R-BLB-01-empty_blob", "01.blob", [](Bytes& file) { file.clear(); }, 0);
  AddChanged(corpus, "bad-R-BLB-09-longer_blob", "01.blob", Resize(4096), 0);
}

void AddBadHeaders(Corpus& corpus) {
  AddChanged(corpus, "bad-R-HDR-01-index_shorter_than_its_header", "index", CutIndexToItsHeader,
             kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-02-marker_magic", "COMMIT", FlipByte(0), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-03-header_length", "COMMIT",
             SetField(format::HeaderFields::kHeaderSize.at, std::uint32_t{60}), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-03-huge_header_of_index", "index",
             SetField(format::HeaderFields::kHeaderSize.at, std::uint32_t{8192}), kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-03-short_header_of_blob", "01.blob",
             SetField(format::HeaderFields::kHeaderSize.at, std::uint32_t{48}), kSealAll);
  AddChanged(corpus, "bad-R-HDR-04-header_digest", "COMMIT",
             FlipByte(format::MarkerFields::kTotalBytes.at), 0);
  AddChanged(corpus, "bad-R-HDR-04-header_digest_of_index", "index",
             FlipByte(format::HeaderFields::kStep.at), kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-04-header_digest_of_blob", "01.blob",
             FlipByte(format::HeaderFields::kStep.at), 0);
  AddChanged(corpus, "bad-R-HDR-05-version", "COMMIT",
             SetField(format::HeaderFields::kVersion.at, std::uint32_t{0}), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-05-incompat_feature_of_marker", "COMMIT",
             SetField(format::HeaderFields::kIncompat.at, std::uint64_t{1} << 63), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-05-header_length_of_marker", "COMMIT", HeaderOfLength(128), 0);
  AddChanged(corpus, "bad-R-HDR-05-header_length_of_index", "index", HeaderOfLength(64),
             kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-05-version_of_blob", "01.blob",
             SetField(format::HeaderFields::kVersion.at, std::uint32_t{0}), kSealAll);
  AddChanged(corpus, "bad-R-HDR-06-reserved", "COMMIT",
             SetField(format::MarkerFields::kTailReserved.at, std::uint64_t{1}), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-06-reserved_behind_the_kind", "COMMIT",
             SetField(format::MarkerFields::kReserved.at, std::uint32_t{1}), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-06-reserved_of_index", "index",
             SetField(format::HeaderFields::kReserved.at, std::uint32_t{1}),
             kSealHeaders | kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-06-reserved_of_blob", "01.blob",
             SetField(format::HeaderFields::kTailReserved.at, std::uint32_t{1}), kSealAll);
  AddChanged(corpus, "bad-R-HDR-07-index_of_kind_blob", "index",
             SetField(format::HeaderFields::kKind.at, std::uint32_t{1}),
             kSealHeaders | kIndexAndMarker);
  // Its length is that of no index.
  AddChanged(corpus, "bad-R-HDR-07-marker_of_kind_index", "COMMIT",
             SetField(format::HeaderFields::kKind.at, std::uint32_t{2}), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-07-blob_of_kind_index", "01.blob",
             SetField(format::HeaderFields::kKind.at, std::uint32_t{2}), kSealAll);
  AddChanged(corpus, "bad-R-HDR-08-step_of_index", "index",
             SetField(format::HeaderFields::kStep.at, std::uint64_t{8}),
             kSealHeaders | kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-08-id_of_marker", "COMMIT",
             SetId(format::HeaderFields::kId.at, OtherAttempt()), kSealMarker);
  AddChanged(corpus, "bad-R-HDR-08-id_of_blob", "01.blob",
             SetId(format::HeaderFields::kId.at, OtherAttempt()), kSealAll);
  AddChanged(corpus, "bad-R-HDR-09-compat_mask_of_index", "index",
             SetField(format::HeaderFields::kCompat.at, std::uint64_t{2}),
             kSealHeaders | kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-09-compat_mask_of_blob", "01.blob",
             SetField(format::HeaderFields::kCompat.at, std::uint64_t{2}), kSealAll);
  AddChanged(corpus, "bad-R-HDR-10-index_magic", "index", FlipByte(0),
             kSealHeaders | kIndexAndMarker);
  AddChanged(corpus, "bad-R-HDR-10-blob_magic", "01.blob", FlipByte(7), kSealAll);
}

void AddBadMarkers(Corpus& corpus) {
  AddChanged(corpus, "bad-R-MRK-02-empty_marker", "COMMIT", [](Bytes& file) { file.clear(); }, 0);
  AddChanged(corpus, "bad-R-MRK-02-longer_marker", "COMMIT", Resize(1), 0);
  AddChanged(corpus, "bad-R-MRK-03-marker_kind", "COMMIT",
             SetField(format::MarkerFields::kKind.at, std::uint32_t{3}), kSealMarker);
  AddChanged(corpus, "bad-R-MRK-04-sequence", "COMMIT",
             SetField(format::MarkerFields::kSequence.at, std::uint64_t{2}), kSealMarker);
  AddChanged(corpus, "bad-R-MRK-04-first_with_a_parent", "COMMIT",
             SetId(format::MarkerFields::kParent.at, OtherAttempt()), kSealMarker);
  AddChanged(
      corpus, "bad-R-MRK-04-own_parent", "COMMIT",
      [](Bytes& file) {
        SetId(format::MarkerFields::kParent.at, MiniSpec{}.attempt)(file);
        SetField(format::MarkerFields::kSequence.at, std::uint64_t{2})(file);
      },
      kSealMarker);
  AddChanged(
      corpus, "bad-R-MRK-04-no_attempt", "COMMIT",
      [](Bytes& file) {
        SetId(format::HeaderFields::kId.at, {})(file);
        SetId(format::HeaderFields::kAttempt.at, {})(file);
      },
      kSealMarker);
  AddChanged(corpus, "bad-R-MRK-04-index_without_header", "COMMIT",
             SetField(format::MarkerFields::kIndexSize.at, std::uint64_t{127}), kSealMarker);
  AddChanged(corpus, "bad-R-MRK-04-void_that_pins", "COMMIT",
             SetField(format::MarkerFields::kKind.at, std::uint32_t{2}), kSealMarker);
  AddChanged(corpus, "bad-R-MRK-06-index_digest", "index", FlipByte(200), 0);
  AddChanged(corpus, "bad-R-MRK-07-total_bytes", "COMMIT",
             SetField(format::MarkerFields::kTotalBytes.at, std::uint64_t{4096}), kSealMarker);
  AddChanged(corpus, "bad-R-MRK-07-blob_count", "COMMIT",
             SetField(format::MarkerFields::kBlobCount.at, std::uint64_t{3}), kSealMarker);
  AddChanged(corpus, "bad-R-MRK-09-void", "COMMIT",
             SetMarker({.kind = format::MarkerKind::kVoid, .attempt = OtherAttempt()}), 0);
  AddChanged(corpus, "bad-R-IDX-01-index_length", "COMMIT",
             SetField(format::MarkerFields::kIndexSize.at, (std::uint64_t{1} << 30) + 1),
             kSealMarker);
}

}  // namespace sealpoint::testing
