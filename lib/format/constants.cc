// SPDX-License-Identifier: Apache-2.0
#include "lib/format/constants.h"

#include <algorithm>
#include <optional>

namespace sealpoint::internal::format {
namespace {

constexpr std::size_t kIdDigits = 32;

std::string NameOf(const Id128& id, std::string_view suffix) { return id.ToHex().append(suffix); }

constexpr std::size_t kEndingSizeMax = 16;

bool IsOfLettersDigitsAnd(std::string_view others, std::string_view text) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

// True for what may follow "<attempt>.probe": a rank, a host, a counter.
bool IsProbeTail(std::string_view tail) { return IsOfLettersDigitsAnd(".-", tail); }

// True for ".parity", ".sig" and whatever else a later version may use.
bool IsReservedSuffix(std::string_view suffix) {
  const std::string_view ending = suffix.substr(1);
  return suffix.front() == '.' && !ending.empty() && ending.size() <= kEndingSizeMax &&
         IsOfLettersDigitsAnd("-", ending);
}

std::optional<NameKind> KindOfSuffix(std::string_view suffix) {
  if (suffix == kIndexSuffix) return NameKind::kIndex;
  if (suffix == kBlobSuffix) return NameKind::kBlob;
  if (suffix == kUnpublishedSuffix) return NameKind::kUnpublishedMarker;
  if (suffix.starts_with(kProbeInfix) && IsProbeTail(suffix.substr(kProbeInfix.size()))) {
    return NameKind::kProbe;
  }
  return IsReservedSuffix(suffix) ? std::optional(NameKind::kReserved) : std::nullopt;
}

}  // namespace

std::string IndexName(const AttemptId& attempt) { return NameOf(attempt, kIndexSuffix); }
std::string BlobName(const BlobId& blob) { return NameOf(blob, kBlobSuffix); }
std::string UnpublishedMarkerName(const Id128& id) { return NameOf(id, kUnpublishedSuffix); }
std::string ProbeName(const Id128& id) { return NameOf(id, kProbeInfix); }

std::string DirectoryName(std::uint64_t step, const AttemptId& attempt) {
  const std::string digits = std::to_string(step);
  std::string name(kDirectoryPrefix);
  if (digits.size() < kStepDigitsMin) name.append(kStepDigitsMin - digits.size(), '0');
  return name.append(digits).append("-").append(attempt.ToHex().substr(0, kAttemptDigits));
}

ParsedName ParseName(std::string_view name) {
  if (name == kMarkerName) return {.kind = NameKind::kMarker, .id = {}};
  if (name == kKeepName) return {.kind = NameKind::kKeep, .id = {}};
  if (name.size() <= kIdDigits) return {};
  const std::optional<NameKind> kind = KindOfSuffix(name.substr(kIdDigits));
  if (!kind) return {};
  const Result<Id128> id = Id128::FromHex(name.substr(0, kIdDigits));
  if (!id) return {};
  return {.kind = *kind, .id = *id};
}

}  // namespace sealpoint::internal::format
