// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/reseal.h"

#include <algorithm>

#include "lib/base/endian.h"
#include "lib/base/macros.h"
#include "lib/format/fields.h"
#include "schema/index_generated.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

constexpr std::size_t kHeader = format::kHeaderSize;
constexpr std::size_t kDigest = format::kDigestSize;

// The part of a file, cut at its end.
MutableByteSpan Cut(Bytes& file, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t begin = std::min<std::uint64_t>(offset, file.size());
  return MutableByteSpan(file).subspan(begin, std::min<std::uint64_t>(size, file.size() - begin));
}

void Put(Bytes& file, std::uint64_t offset, const Digest& digest) {
  const MutableByteSpan place = Cut(file, offset, kDigest);
  if (place.size() == kDigest) PutDigest(place, 0, digest);
}

void ResealHeaderOf(Bytes& file) {
  const MutableByteSpan header = Cut(file, 0, kHeader);
  if (header.size() == kHeader) ResealHeader(header);
}

void ResealBlob(Bytes& file, const Seals::Blob& blob, unsigned which) {
  const format::BlobSections& at = blob.sections;
  if (which & kSealChunks) {
    for (std::size_t i = 0; i < blob.records.size(); ++i) {
      const format::ChunkRecord& record = blob.records[i];
      const Digest digest = ComputeDigest(Cut(file, record.offset, record.stored_size));
      const std::uint64_t field = record.codec == Codec::kNone ? 32 : 48;
      Put(file, at.records + i * format::kRecordSize + field, digest);
    }
  }
  if (which & kSealTable) {
    constexpr std::uint64_t kGroup = format::kRecordsPerGroup * format::kRecordSize;
    for (std::uint64_t i = 0; i * kGroup < at.records_size; ++i) {
      const std::uint64_t size = std::min(kGroup, at.records_size - i * kGroup);
      Put(file, at.table + i * kDigest, ComputeDigest(Cut(file, at.records + i * kGroup, size)));
    }
    Put(file, at.trailer + format::TrailerFields::kGroupListDigest.at,
        ComputeDigest(Cut(file, at.table, at.group_list_size)));
  }
  if (which & kSealManifest) {
    Put(file, at.trailer + format::TrailerFields::kManifestDigest.at,
        ComputeDigest(Cut(file, at.manifest, at.manifest_end - at.manifest)));
  }
  if (which & kSealHeaders) {
    ResealHeaderOf(file);
    const MutableByteSpan digest = Cut(file, format::HeaderFields::kDigest.at, kDigest);
    const MutableByteSpan copy =
        Cut(file, at.trailer + format::TrailerFields::kHeaderDigest.at, digest.size());
    std::copy_n(digest.begin(), copy.size(), copy.begin());
  }
  if (which & kSealTrailer)
    Put(file, at.trailer + format::TrailerFields::kDigest.at,
        ComputeDigest(Cut(file, at.trailer, format::TrailerFields::kDigest.at)));
}

void PinBlob(Bytes& index, Bytes& file, const Seals::Blob& blob) {
  const format::BlobSections& at = blob.sections;
  Put(index, blob.group_list_pin, ComputeDigest(Cut(file, at.table, at.group_list_size)));
  const MutableByteSpan stored = Cut(file, at.trailer + format::TrailerFields::kDigest.at, kDigest);
  const MutableByteSpan pin = Cut(index, blob.trailer_pin, stored.size());
  std::copy_n(stored.begin(), pin.size(), pin.begin());
}

}  // namespace

Seals FindSeals(const MiniContainer& container) {
  Seals seals{.index_name = container.index_name, .blobs = {}};
  const Bytes& index = container.files.at(container.index_name);
  const fb::Index* root = fb::GetIndex(index.data() + kHeader);
  const auto offset_of = [&](const fb::Bits128* digest) {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(digest) - index.data());
  };
  SEALPOINT_CHECK(root->blobs()->size() == container.blobs.size());
  flatbuffers::uoffset_t i = 0;
  for (const auto& [number, blob] : container.blobs) {
    const fb::Blob* pin = root->blobs()->Get(i++);
    seals.blobs.push_back({.name = blob.name,
                           .sections = blob.sections,
                           .records = blob.records,
                           .group_list_pin = offset_of(pin->group_list_digest()),
                           .trailer_pin = offset_of(pin->trailer_digest())});
  }
  return seals;
}

void Reseal(std::map<std::string, Bytes>& files, const Seals& seals, unsigned which) {
  Bytes& index = files[seals.index_name];
  for (const Seals::Blob& blob : seals.blobs) {
    Bytes& file = files[blob.name];
    ResealBlob(file, blob, which);
    if (which & kSealPins) PinBlob(index, file, blob);
  }
  if (which & kSealHeaders) ResealHeaderOf(index);
  Bytes& marker = files["COMMIT"];
  if (marker.size() != format::kMarkerSize) return;
  if (which & kSealIndex) {
    internal::StoreLe(MutableByteSpan(marker), format::MarkerFields::kIndexSize.at,
                      std::uint64_t{index.size()});
    Put(marker, format::MarkerFields::kIndexDigest.at, ComputeDigest(index));
  }
  if (which & kSealMarker) ResealMarker(marker);
}

}  // namespace sealpoint::testing
