// SPDX-License-Identifier: Apache-2.0
//
// What later versions, and extensions of this one, will write: files that a reader of this version
// must accept, or refuse as unsupported and never as corrupt.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "lib/format/marker.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/conformance/transcribe.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

constexpr std::uint64_t kUnknownCompat = std::uint64_t{1} << 5;
constexpr std::uint64_t kOtherCodecs = std::uint64_t{1} << 2;
constexpr std::uint16_t kPrivateCodec = 0xf000;

// A file, and the digests to repair behind a change of its header.
struct ChangedFile {
  std::string short_name;
  std::string word;
  unsigned seals = 0;
};

std::function<void(int, Bytes&)> EditManifests(const MetadataChange& damage) {
  return [damage](int, Bytes& buffer) {
    HostileMetadata metadata = TranscribeManifest(buffer);
    damage(metadata);
    buffer = EncodeHostileManifest(metadata);
  };
}
MetadataChange SetUnknown(std::vector<UnknownField> tables) {
  return [tables](HostileMetadata& metadata) { metadata.unknown_fields = tables; };
}

MiniSpec WithFeatures(const format::FeatureMasks& of_blobs, const format::FeatureMasks& all) {
  MiniSpec spec = BaseSpec();
  spec.hooks.blob_header = [=](int, format::FileHeader& header) { header.features = of_blobs; };
  spec.hooks.index_header = [=](format::FileHeader& header) { header.features = all; };
  spec.hooks.marker = [=](format::Marker& marker) { marker.features = all; };
  return spec;
}

void AddCompatFields(Corpus& corpus) {
  const format::FeatureMasks announced{.compat = kUnknownCompat, .incompat = 0};
  const std::vector<UnknownField> skipped = {UnknownField::kRoot,     UnknownField::kTensor,
                                             UnknownField::kObject,   UnknownField::kBlob,
                                             UnknownField::kMeshAxis, UnknownField::kProvenance};
  MiniSpec fields = WithFeatures(announced, announced);
  fields.hooks.index_bytes = EditIndex(SetUnknown(skipped));
  fields.hooks.manifest_bytes = EditManifests(SetUnknown(skipped));
  corpus.Add("good-unknown_compat_field", fields);

  for (const auto& [table, name] :
       {std::pair(UnknownField::kGrid, "grid"), std::pair(UnknownField::kBoxList, "box_list")}) {
    MiniSpec geometry = WithFeatures(announced, announced);
    geometry.hooks.index_bytes = EditIndex(SetUnknown({table}));
    corpus.Add(std::string("bad-R-IDX-03-announced_field_of_a_").append(name), geometry);
  }
  MiniSpec manifest = WithFeatures({}, announced);
  manifest.hooks.manifest_bytes = [](int blob, Bytes& buffer) {
    if (blob == 0) EditManifests(SetUnknown({UnknownField::kRoot}))(blob, buffer);
  };
  corpus.Add("bad-R-IDX-03-field_that_only_the_index_announces", manifest);
}

// What a compat feature may put beside the tables: the extensions of marker and trailers.
void AddExtensions(Corpus& corpus) {
  const format::FeatureMasks announced{.compat = kUnknownCompat, .incompat = 0};
  constexpr std::uint64_t kMarkerEnd = format::kMarkerSize - 8;
  constexpr std::uint64_t kTrailerEnd = format::TrailerFields::kExtension.end() - 8;
  const auto in_trailer = [](std::uint64_t at) {
    return [at](int, Bytes& trailer) {
      SetField(at, ~std::uint64_t{0})(trailer);
      ResealTrailer(trailer);
    };
  };
  const auto in_marker = [](CorpusEntry& entry, std::uint64_t at) {
    SetField(at, ~std::uint64_t{0})(entry.container.marker());
    ResealMarker(entry.container.marker());
  };
  MiniSpec good = WithFeatures(announced, announced);
  good.hooks.trailer_bytes = in_trailer(kTrailerEnd);
  in_marker(corpus.Add("good-announced_extensions", good), kMarkerEnd);

  in_marker(corpus.Add("bad-R-HDR-06-extension_of_marker", BaseSpec()), kMarkerEnd);
  in_marker(corpus.Add("bad-R-HDR-06-announced_before_the_extension_of_marker",
                       WithFeatures({}, announced)),
            format::MarkerFields::kExtension.at - 8);
  MiniSpec unannounced = WithFeatures({}, announced);
  unannounced.hooks.trailer_bytes = [=](int blob, Bytes& trailer) {
    if (blob == 0) in_trailer(kTrailerEnd)(blob, trailer);
  };
  corpus.Add("bad-R-HDR-06-extension_that_only_the_index_announces", unannounced);
  MiniSpec reserved = WithFeatures(announced, announced);
  reserved.hooks.trailer_bytes = [=](int blob, Bytes& trailer) {
    if (blob == 0) in_trailer(format::TrailerFields::kExtension.at - 8)(blob, trailer);
  };
  corpus.Add("bad-R-HDR-06-announced_before_the_extension_of_trailer", reserved);
}

// BaseSpec with fingerprints, and one of its index changed. The marker pins it.
void AddFingerprint(Corpus& corpus, std::string name, std::string_view tensor,
                    const std::function<void(HostileTensor&)>& damage,
                    bool has_fingerprints = true) {
  MiniSpec spec = BaseSpec();
  spec.has_fingerprints = has_fingerprints;
  spec.hooks.index_bytes = EditIndex([=](HostileMetadata& metadata) {
    for (HostileTensor& found : metadata.tensors) {
      if (found.name == tensor) damage(found);
    }
  });
  corpus.Add(std::move(name), spec);
}

void AddFingerprints(Corpus& corpus) {
  corpus.Add("good-fingerprints", FingerprintedSpec());
  MiniSpec linked = FingerprintedSpec();
  linked.hooks.blob_header = [](int number, format::FileHeader& header) {
    if (number == 1) header.features = {};
  };
  corpus.Add("good-fingerprints_of_some", linked);

  AddFingerprint(corpus, "bad-R-FPR-01-value_not_reduced", "grid",
                 [](HostileTensor& t) { t.fingerprint->back() = Fingerprint::kModulus; });
  AddFingerprint(corpus, "bad-R-FPR-01-of_an_empty_tensor", "empty",
                 [](HostileTensor& t) { t.fingerprint->back() = 1; });
  AddFingerprint(corpus, "bad-R-FPR-02-other_sum", "grid",
                 [](HostileTensor& t) { t.fingerprint->front() ^= 1; });
  AddFingerprint(corpus, "bad-R-FPR-02-missing_in_index", "grid",
                 [](HostileTensor& t) { t.fingerprint.reset(); });
  AddFingerprint(
      corpus, "bad-R-IDX-03-fingerprint_without_its_bit", "grid",
      [](HostileTensor& t) { t.fingerprint = {1, 2}; }, false);
}

// Attributes of each type, of a box list, a grid, a tensor without elements and the checkpoint.
MiniSpec AttributedSpec() {
  MiniSpec spec = BaseSpec();
  const Attributes dimensions =
      Attributes::Make({{"dimensions", std::vector<std::string>{"lat", "lon"}}, {"units", "K"}})
          .value();
  const Attributes numbers =
      Attributes::Make({{"_FillValue", std::numeric_limits<double>::quiet_NaN()},
                        {"is_mask", true},
                        {"levels", std::vector<double>{1000, 0.5}},
                        {"none", std::vector<std::int64_t>{}},
                        {"offsets", std::vector<std::int64_t>{-1, 1}},
                        {"seen", std::vector<bool>{false, true}},
                        {"valid_max", std::int64_t{-5}}})
          .value();
  for (MiniTensor& tensor : spec.tensors) {
    if (tensor.name == "grid") tensor.attributes = dimensions;
    if (tensor.name == "bricks" || tensor.name == "empty") tensor.attributes = numbers;
    if (tensor.name == "scalar") tensor.attributes = Attributes::Make({{"units", "m s-1"}}).value();
  }
  spec.attributes = Attributes::Make({{"time", "2026-11-30T00:00:00Z"}, {"title", ""}}).value();
  return spec;
}

// AttributedSpec with another set in the index.
void AddAttributes(Corpus& corpus, std::string name, std::string_view set) {
  MiniSpec spec = AttributedSpec();
  spec.hooks.index_bytes = EditIndex([=](HostileMetadata& metadata) {
    for (HostileTensor& found : metadata.tensors) {
      if (found.name == "scalar") found.attributes = set;
    }
  });
  corpus.Add(std::move(name), spec);
}

void AddAttributes(Corpus& corpus) {
  using namespace std::string_view_literals;
  corpus.Add("good-attributes", AttributedSpec());
  MiniSpec of_checkpoint = BaseSpec();
  of_checkpoint.attributes = AttributedSpec().attributes;
  corpus.Add("good-attributes_of_the_checkpoint", of_checkpoint);

  AddAttributes(corpus, "bad-R-ATT-01-empty_set", ""sv);
  AddAttributes(corpus, "bad-R-ATT-02-value_beyond_the_set", "\1\0n\2\1\0\0\0\0\0\0\0\0\0\0"sv);
  AddAttributes(corpus, "bad-R-ATT-02-half_an_entry", "\1\0n\4\1\0\0\0\1\1\0o\4"sv);
  AddAttributes(corpus, "bad-R-ATT-03-name_twice", "\1\0n\4\1\0\0\0\1\1\0n\4\1\0\0\0\1"sv);
  AddAttributes(corpus, "bad-R-ATT-03-control_character", "\1\0\n\4\1\0\0\0\1"sv);
  AddAttributes(corpus, "bad-R-ATT-04-type_5", "\1\0n\5\1\0\0\0\1"sv);
  AddAttributes(corpus, "bad-R-ATT-05-two_values", "\1\0n\4\2\0\0\0\1\1"sv);
  AddAttributes(corpus, "bad-R-ATT-05-truth_of_2", "\1\0n\x14\2\0\0\0\1\2"sv);
  AddAttributes(corpus, "bad-R-ATT-05-string_of_other_bytes", "\1\0n\1\1\0\0\0\1\0\0\0\xff"sv);
  AddAttributes(corpus, "bad-R-ATT-06-other_in_the_index", "\1\0n\4\1\0\0\0\1"sv);
  MiniSpec unannounced = BaseSpec();
  unannounced.hooks.index_bytes =
      EditIndex([](HostileMetadata& metadata) { metadata.attributes = "\1\0n\4\1\0\0\0\1"sv; });
  corpus.Add("bad-R-IDX-03-attributes_without_their_bit", unannounced);
}

void AddCodecs(Corpus& corpus) {
  const format::FeatureMasks other{.compat = 0, .incompat = kOtherCodecs};
  MiniSpec codec = WithFeatures(other, other);
  codec.hooks.record_bytes = [](int, Bytes& records) {
    internal::StoreLe(MutableByteSpan(records), format::RecordFields::kCodec.at, std::uint16_t{3});
  };
  corpus.Add("bad-R-HDR-05-codec_feature", codec);
  MiniSpec private_codec = BaseSpec();
  private_codec.hooks.record_bytes = [](int blob, Bytes& records) {
    if (blob == 0)
      internal::StoreLe(MutableByteSpan(records), format::RecordFields::kCodec.at, kPrivateCodec);
  };
  corpus.Add("bad-R-COD-01-private_codec", private_codec);
}

}  // namespace

void AddFeatures(Corpus& corpus) {
  AddCompatFields(corpus);
  AddExtensions(corpus);
  AddFingerprints(corpus);
  AddAttributes(corpus);
  AddCodecs(corpus);
  for (const auto& [file, word, seals] :
       {ChangedFile{"COMMIT", "marker", kSealMarker},
        ChangedFile{"index", "index", kSealHeaders | kSealIndex | kSealMarker},
        ChangedFile{"01.blob", "blob", kSealAll}}) {
    AddChanged(corpus, "bad-R-HDR-05-version_2_of_" + word, file,
               SetField(format::HeaderFields::kVersion.at, std::uint32_t{2}), seals);
    AddChanged(corpus, "bad-R-HDR-05-kind_of_" + word, file,
               SetField(format::HeaderFields::kKind.at, std::uint32_t{4}), seals);
  }
  MiniSpec private_dtype;
  private_dtype.tensors.push_back(
      {.name = "w",
       .dtype = static_cast<DType>(0xf000),
       .shape = {3},
       .element_size = 256,
       .shards = {{.region = Region::Whole({3}), .bytes = NoiseBytes(17, 768)}}});
  corpus.Add("good-private_dtype", private_dtype);

  MiniSpec linked = BaseSpec();
  linked.hooks.blob_header = [](int number, format::FileHeader& header) {
    if (number != 0) return;
    header.attempt = OtherAttempt();
    header.step = 3;
  };
  corpus.Add("good-blob_of_another_attempt", linked);
}

}  // namespace sealpoint::testing
