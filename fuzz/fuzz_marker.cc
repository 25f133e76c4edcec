// SPDX-License-Identifier: Apache-2.0
//
// Proves that no 512 bytes make the marker's decoder crash or blame anything but the bytes, and
// that a marker that it accepts is, but for its extension, the only encoding of what it says.
#include <algorithm>

#include "fuzz/support/target.h"
#include "lib/format/marker.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::fuzz {
namespace {

namespace format = internal::format;

void Check(ByteSpan bytes) {
  const Result<format::Marker> marker = format::DecodeMarker(bytes);
  if (!marker.ok()) return RequireAnswer(marker.error());
  format::MarkerBytes again = format::EncodeMarker(*marker);
  constexpr std::size_t kExtension = format::MarkerFields::kExtension.at;
  std::ranges::copy(bytes.subspan(kExtension), again.begin() + kExtension);
  testing::ResealMarker(again);
  Require(std::ranges::equal(again, bytes), "an accepted marker has a second encoding");
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input is a marker: checked as it is, then with the right length and digest.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const ByteSpan input = fuzz::AsInput(data, size);
  fuzz::Check(input);
  Bytes repaired(input.begin(), input.end());
  repaired.resize(internal::format::kMarkerSize);
  testing::ResealMarker(repaired);
  fuzz::Check(repaired);
  return 0;
}
