// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_METADATA_RULE_CHECK_H_
#define SEALPOINT_TESTS_UNIT_METADATA_RULE_CHECK_H_

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>

#include "lib/metadata/metadata.h"
#include "tests/support/container/hostile_index.h"

namespace sealpoint::internal::metadata {

MATCHER_P2(Breaks, code, rule, std::string("breaks ") + rule) {
  *result_listener << "which is " << arg.ToString();
  return arg.code() == code && arg.place().rule == rule;
}

inline auto Corrupt(const char* rule) { return Breaks(Code::kCorrupt, rule); }

// The result of the reader's whole pass over the bytes of an index.
inline Status CheckBytes(Bytes bytes, const Limits& limits = {}) {
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return Metadata::Decode(MetadataKind::kIndex, owner, ByteSpan(*owner), limits).status();
}

inline Status Check(const testing::HostileMetadata& index, const Limits& limits = {}) {
  return CheckBytes(testing::EncodeHostileIndex(index), limits);
}

// The same if the header of the file has a compat bit that nobody knows here.
inline Status CheckAnnounced(const testing::HostileMetadata& index) {
  const auto owner = std::make_shared<const Bytes>(testing::EncodeHostileIndex(index));
  return Metadata::Decode(MetadataKind::kIndex, owner, ByteSpan(*owner), {}, {.unknown = true})
      .status();
}

// The same of the manifest of a blob with these counts.
inline Status CheckManifest(const testing::HostileMetadata& manifest,
                            Metadata::ManifestCounts counts) {
  const auto owner = std::make_shared<const Bytes>(testing::EncodeHostileManifest(manifest));
  return Metadata::DecodeManifest(owner, ByteSpan(*owner), counts, Limits{}).status();
}

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_TESTS_UNIT_METADATA_RULE_CHECK_H_
