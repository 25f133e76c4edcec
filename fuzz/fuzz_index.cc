// SPDX-License-Identifier: Apache-2.0
//
// Proves that no bytes make the decoder of index and manifest crash, take memory without bound or
// blame anything but the bytes, and that everything that it accepts can be used without a check.
#include <memory>

#include "fuzz/support/target.h"
#include "fuzz/support/walk_metadata.h"
#include "lib/format/file_header.h"
#include "lib/metadata/metadata.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::fuzz {
namespace {

namespace metadata = internal::metadata;

namespace format = internal::format;

void CheckHeader(ByteSpan file) {
  const auto header = format::DecodeHeader(
      file.first(std::min(file.size(), format::kHeaderSizeMax)), format::FileKind::kIndex);
  if (!header.ok()) RequireAnswer(header.error());
}

void Check(const Result<metadata::Metadata>& metadata) {
  if (!metadata.ok()) return RequireAnswer(metadata.error());
  WalkMetadata(*metadata);
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input is an index file. Its header is checked as it is and with the right digest; what is
// behind the header as an index, and as a manifest, without regard to the header.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const ByteSpan input = fuzz::AsInput(data, size);
  const auto file = std::make_shared<Bytes>(input.begin(), input.end());
  fuzz::CheckHeader(*file);
  if (file->size() < internal::format::kHeaderSize) return 0;
  testing::ResealHeader(MutableByteSpan(*file).first(internal::format::kHeaderSize));
  fuzz::CheckHeader(*file);
  const ByteSpan buffer = ByteSpan(*file).subspan(internal::format::kHeaderSize);
  fuzz::Check(internal::metadata::Metadata::Decode(internal::metadata::MetadataKind::kIndex, file,
                                                   buffer, {}));
  fuzz::Check(internal::metadata::Metadata::Decode(
      internal::metadata::MetadataKind::kIndex, file, buffer, {},
      {.unknown = true, .fingerprints = true, .attributes = true}));
  fuzz::Check(internal::metadata::Metadata::DecodeManifest(
      file, buffer, {.record_count = 3, .shard_count = 3}, {}));
  return 0;
}
