// SPDX-License-Identifier: Apache-2.0
//
// Proves that the fuzzers can find a bug: a header is decoded as in fuzz_marker, and a bug is
// planted behind the magic. A run of a few seconds must end with a finding.
#include <cstring>

#include "fuzz/support/target.h"
#include "lib/format/file_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const auto header = internal::format::DecodeHeader(fuzz::AsInput(data, size),
                                                     internal::format::FileKind::kMarker);
  if (!header.ok()) fuzz::RequireAnswer(header.error());
  fuzz::Require(size < 4 || std::memcmp(data, "\x89SPT", 4) != 0, "the canary was found");
  return 0;
}
