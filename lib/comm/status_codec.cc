// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/status_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/endian.h"

namespace sealpoint::internal::comm {
namespace {

constexpr std::size_t kTextMaxBytes = 64 * kKiB;
constexpr std::size_t kHeadBytes = 18;
constexpr std::size_t kPartsAt = 1;
constexpr std::size_t kOffsetAt = 2;
constexpr std::size_t kRankAt = 10;
constexpr std::uint8_t kHasOffset = 1;
constexpr std::uint8_t kHasRank = 2;
constexpr std::uint8_t kHasUnknownOutcome = 4;
constexpr unsigned kKnownParts = kHasOffset | kHasRank | kHasUnknownOutcome;

void AppendText(Bytes& out, std::string_view text) {
  const ByteSpan bytes = AsBytes(text.substr(0, kTextMaxBytes));
  const std::size_t at = out.size();
  out.resize(at + sizeof(std::uint32_t));
  StoreLe(MutableByteSpan(out), at, static_cast<std::uint32_t>(bytes.size()));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Takes one text from the front of `rest`; returns nothing if it is cut short or too long.
std::optional<std::string_view> TakeText(ByteSpan& rest) {
  if (rest.size() < sizeof(std::uint32_t)) return std::nullopt;
  const std::size_t length = LoadLe<std::uint32_t>(rest, 0);
  rest = rest.subspan(sizeof(std::uint32_t));
  if (length > kTextMaxBytes || length > rest.size()) return std::nullopt;
  const std::string_view text = AsText(rest.first(length));
  rest = rest.subspan(length);
  return text;
}

}  // namespace

Bytes EncodeStatus(const Status& status) {
  const Place& place = status.place();
  Bytes out(kHeadBytes);
  const MutableByteSpan head(out);
  unsigned parts = 0;
  if (place.offset) parts |= kHasOffset;
  if (place.rank) parts |= kHasRank;
  if (status.has_unknown_outcome()) parts |= kHasUnknownOutcome;
  StoreLe(head, 0, static_cast<std::uint8_t>(status.code()));
  StoreLe(head, kPartsAt, static_cast<std::uint8_t>(parts));
  StoreLe(head, kOffsetAt, place.offset.value_or(0));
  StoreLe(head, kRankAt, static_cast<std::uint64_t>(std::max(place.rank.value_or(0), 0)));
  for (const std::string* text :
       {&status.message(), &place.rule, &place.path, &place.tensor, &place.object, &place.host}) {
    AppendText(out, *text);
  }
  return out;
}

std::optional<Status> DecodeStatus(ByteSpan bytes) {
  if (bytes.size() < kHeadBytes) return std::nullopt;
  const auto code = LoadLe<std::uint8_t>(bytes, 0);
  const auto parts = LoadLe<std::uint8_t>(bytes, kPartsAt);
  const auto rank = LoadLe<std::uint64_t>(bytes, kRankAt);
  if (CodeName(static_cast<Code>(code)) == "Unknown") return std::nullopt;
  if ((parts & ~kKnownParts) != 0) return std::nullopt;
  if (rank > std::numeric_limits<int>::max()) return std::nullopt;

  ByteSpan rest = bytes.subspan(kHeadBytes);
  std::array<std::string_view, 6> texts;
  for (std::string_view& text : texts) {
    const auto taken = TakeText(rest);
    if (!taken) return std::nullopt;
    text = *taken;
  }
  if (!rest.empty()) return std::nullopt;
  const auto& [message, rule, path, tensor, object, host] = texts;
  Status status(static_cast<Code>(code), std::string(message));
  if (status.ok()) return Status();  // {} would be an empty optional
  status = Status(std::move(status).AtRule(rule).AtPath(path).AtTensor(tensor).AtObject(object));
  if ((parts & kHasOffset) != 0) {
    status = Status(std::move(status).AtOffset(LoadLe<std::uint64_t>(bytes, kOffsetAt)));
  }
  if ((parts & kHasRank) != 0) {
    status = Status(std::move(status).AtRank(static_cast<int>(rank), host));
  }
  if ((parts & kHasUnknownOutcome) != 0) status = Status(std::move(status).WithUnknownOutcome());
  return status;
}

}  // namespace sealpoint::internal::comm
