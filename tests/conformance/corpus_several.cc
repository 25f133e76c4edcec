// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints with several damages: what a verifier lists of them, and what it leaves out because
// it depends on something bad (spec/reader-rules.md, section 5).
#include <string>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/conformance/transcribe.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

struct FileChange {
  std::string short_name;
  Change change;
};

CorpusEntry& AddSeveral(Corpus& corpus, const std::string& name,
                        const std::vector<FileChange>& changes, unsigned seals = 0,
                        const MiniSpec& spec = BaseSpec()) {
  CorpusEntry& entry = corpus.Add("several-" + name, spec);
  const Seals where = FindSeals(entry.container);
  for (const FileChange& file : changes) {
    file.change(entry.container.files.at(FileNameOf(file.short_name)));
  }
  if (seals != 0) Reseal(entry.container.files, where, seals);
  return entry;
}

Change Both(const Change& a, const Change& b) {
  return [=](Bytes& file) {
    a(file);
    b(file);
  };
}

std::uint64_t RecordAt(int blob, std::uint64_t record) {
  return BaseBlob(blob).sections.records + record * format::kRecordSize;
}

void AddIndependent(Corpus& corpus) {
  const Change chunk_of_1 = FlipByte(BaseBlob(0).records[0].offset);
  const Change chunk_of_2 = FlipByte(BaseBlob(1).records[0].offset);
  const format::BlobSections& at = BaseBlob(0).sections;
  AddSeveral(corpus, "chunks_of_two_blobs_and_padding",
             {{"01.blob", Both(chunk_of_1, FlipByte(at.trailer - 1))}, {"02.blob", chunk_of_2}});
  AddSeveral(corpus, "manifest_and_chunk",
             {{"01.blob", Both(chunk_of_1, FlipByte(at.manifest + 20))}});
  AddSeveral(corpus, "missing_blob_and_bad_chunk", {{"01.blob", chunk_of_1}})
      .container.files.erase(FileNameOf("02.blob"));
  AddSeveral(corpus, "longer_blob_with_a_bad_chunk",
             {{"01.blob", Both(chunk_of_1, [](Bytes& file) { file.resize(file.size() + 1); })}});
  AddSeveral(
      corpus, "unknown_codec_and_bad_chunk",
      {{"01.blob", SetField(RecordAt(0, 0) + format::RecordFields::kCodec.at, std::uint16_t{99})},
       {"02.blob", chunk_of_2}},
      kSealTable | kSealTrailer | kSealPins | kSealIndex | kSealMarker);
  // The chunk behind a bad record is checked, though nobody can say whether it lies behind it.
  AddSeveral(corpus, "bad_record_and_the_next_chunk",
             {{"01.blob", Both(SetField(RecordAt(0, 0) + format::RecordFields::kStoredSize.at,
                                        std::uint32_t{1}),
                               FlipByte(BaseBlob(0).records[1].offset))}},
             kSealTable | kSealTrailer | kSealPins | kSealIndex | kSealMarker);
  AddSeveral(corpus, "last_records_and_padding_behind_the_chunks",
             {{"01.blob", Both(FlipByte(RecordAt(0, 0) + format::RecordFields::kRawDigest.at + 8),
                               FlipByte(at.table - 1))}});
}

void AddDependent(Corpus& corpus) {
  const format::BlobSections& at = BaseBlob(0).sections;
  const Change chunk = FlipByte(BaseBlob(0).records[0].offset);
  const Change header = FlipByte(90);
  const Change manifest = FlipByte(at.manifest + 20);
  AddSeveral(corpus, "marker_index_and_chunk",
             {{"COMMIT", FlipByte(200)}, {"index", FlipByte(200)}, {"01.blob", chunk}});
  AddSeveral(corpus, "index_and_chunk", {{"index", FlipByte(200)}, {"01.blob", chunk}});
  AddSeveral(corpus, "group_list_and_chunk", {{"01.blob", Both(chunk, FlipByte(at.table))}});
  AddSeveral(corpus, "trailer_header_manifest_and_padding",
             {{"01.blob", Both(Both(FlipByte(at.trailer + format::TrailerFields::kBlob.at + 4),
                                    FlipByte(at.trailer - 1)),
                               Both(header, manifest))}});
  AddSeveral(corpus, "header_and_manifest", {{"01.blob", Both(header, manifest)}});
  AddSeveral(
      corpus, "last_records_trailer_and_padding_behind_the_chunks",
      {{"01.blob", Both(Both(FlipByte(RecordAt(0, 0) + format::RecordFields::kRawDigest.at + 8),
                             FlipByte(at.trailer + format::TrailerFields::kBlob.at + 4)),
                        FlipByte(at.table - 1))}});
  AddSeveral(corpus, "manifest_and_sum_of_raw_bytes",
             {{"01.blob", Both(manifest, SetField(at.trailer + format::TrailerFields::kRawBytes.at,
                                                  std::uint64_t{1}))}},
             kSealTrailer | kSealPins | kSealIndex | kSealMarker);
  // Whether the other manifest has the empty tensor cannot be said.
  MiniSpec undeclared = BaseSpec();
  undeclared.hooks.manifest_bytes = [](int blob, Bytes& bytes) {
    if (blob != 0) return;
    HostileMetadata metadata = TranscribeManifest(bytes);
    std::erase_if(metadata.tensors, [](const HostileTensor& t) { return t.name == "empty"; });
    bytes = EncodeHostileManifest(metadata);
  };
  AddSeveral(corpus, "manifest_and_an_undeclared_tensor",
             {{"02.blob", FlipByte(BaseBlob(1).sections.manifest + 20)}}, 0, undeclared);
}

}  // namespace

void AddSeveralDamages(Corpus& corpus) {
  AddIndependent(corpus);
  AddDependent(corpus);
}

}  // namespace sealpoint::testing
