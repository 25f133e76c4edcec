// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_SUMMARY_PARTS_H_
#define SEALPOINT_LIB_WRITER_BLOB_SUMMARY_PARTS_H_

#include <memory>

#include "lib/format/file_header.h"
#include "lib/format/trailer.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/blob_writer.h"

namespace sealpoint::internal::writer {

// The serialised form of a summary: header, trailer, manifest, one after the other.
Bytes JoinSummaryParts(ByteSpan header, ByteSpan trailer, ByteSpan manifest);

// A verified summary.
struct DecodedSummary {
  std::shared_ptr<const Bytes> bytes{};  // as serialised; the manifest is decoded in place
  format::FileHeader header{};
  format::Trailer trailer{};
  metadata::BlobPin pin{};
  metadata::Metadata manifest;
};
// Verifies the three parts and that they belong together. Errors: Corrupt, Unsupported,
// LimitExceeded.
Result<DecodedSummary> DecodeSummary(std::shared_ptr<const Bytes> bytes, const Limits& limits);

}  // namespace sealpoint::internal::writer

namespace sealpoint {
struct BlobSummary::Decoded final : internal::writer::DecodedSummary {};
}  // namespace sealpoint

#endif  // SEALPOINT_LIB_WRITER_BLOB_SUMMARY_PARTS_H_
