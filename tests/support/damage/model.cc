// SPDX-License-Identifier: Apache-2.0
#include "tests/support/damage/model.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "lib/base/endian.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

constexpr std::uint32_t kBlobKind = 1;
constexpr std::uint32_t kMarkerKind = 3;

std::map<std::string, std::string> ReadCodes() {
  std::map<std::string, std::string> codes;
  std::ifstream file(SEALPOINT_READER_RULES);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| R-")) continue;
    const std::size_t rule_end = line.find(" |", 2);
    const std::size_t code_end = line.find(" |", rule_end + 3);
    codes[line.substr(2, rule_end - 2)] = line.substr(rule_end + 3, code_end - rule_end - 3);
  }
  SEALPOINT_CHECK(codes.size() > 50);
  return codes;
}

// The file of a name, with links followed; null if there is none.
const Bytes* FileBehind(const DamagedFiles& files, const std::string& name) {
  auto found = files.find(name);
  if (found != files.end() && found->second.kind == EntryKind::kSymlink) {
    found = files.find(found->second.target);
  }
  if (found == files.end() || found->second.kind != EntryKind::kFile) return nullptr;
  return &found->second.bytes;
}

// The first byte of [begin, end) that differs.
std::optional<std::uint64_t> FirstDifference(const Bytes& a, const Bytes& b, std::uint64_t begin,
                                             std::uint64_t end) {
  if (std::memcmp(a.data() + begin, b.data() + begin, end - begin) == 0) return std::nullopt;
  while (a[begin] == b[begin]) ++begin;
  return begin;
}

}  // namespace

// Which sections of a blob differ from the good one.
struct DamageModel::BlobDamage {
  std::string name;
  const Bytes& good;
  const Bytes& bad;
  bool group_list = false;
  bool header = false;
  bool trailer = false;
  std::set<std::uint32_t> groups;
  std::uint32_t last_group = 0;

  bool HidesRecord(std::uint32_t record) const {
    return group_list || groups.contains(record / format::kRecordsPerGroup);
  }
};

DamageModel::DamageModel(const DamageCase& one) : case_(one) {
  const auto owners = FindChunkOwners(one);
  for (const auto& [number, blob] : one.container.blobs) {
    std::vector<BlobArea>& areas = areas_[blob.name] =
        FindBlobAreas(one.container.files.at(blob.name));
    for (BlobArea& area : areas) {
      if (area.kind != AreaKind::kPlainChunk && area.kind != AreaKind::kCodedChunk) continue;
      const ChunkOf& chunk = owners.at(blob.name).at(area.record);
      area.owner = chunk.owner;
      area.is_object = chunk.is_object;
    }
  }
}

std::vector<ExpectedFinding> DamageModel::Expect(const DamagedFiles& files,
                                                 const std::set<std::string>& changed) const {
  Findings found;
  const std::string& index_name = case_.container.index_name;
  bool is_hidden = false;
  if (changed.contains("COMMIT")) {
    if (auto marker = ExpectMarker(files)) {
      found.push_back(*std::move(marker));
      is_hidden = true;
    }
  }
  if (changed.contains(index_name) && !is_hidden) {
    if (auto index = ExpectIndex(files)) {
      found.push_back(*std::move(index));
      is_hidden = true;
    }
  }
  if (is_hidden) return found;  // no intact pin, so that nothing can be checked
  for (const auto& [name, areas] : areas_) {
    if (changed.contains(name)) ExpectBlob(name, files, found);
  }
  return found;
}

// reader-rules.md section 3, steps 1 and 2.
std::optional<ExpectedFinding> DamageModel::ExpectMarker(const DamagedFiles& files) const {
  const auto finding = [](std::string_view rule) {
    return ExpectedFinding{.rule = std::string(rule), .file = "COMMIT"};
  };
  const Bytes* marker = FileBehind(files, "COMMIT");
  if (marker == nullptr) return finding("R-MRK-01");
  if (*marker == case_.container.files.at("COMMIT")) return std::nullopt;
  if (marker->size() != format::kMarkerSize) return finding("R-MRK-02");
  if (const auto fault = FindHeaderFault(*marker, kMarkerKind)) return finding(*fault);
  // Valid by itself, so it is the marker of another checkpoint.
  if (internal::LoadLe<std::uint32_t>(*marker, format::MarkerFields::kKind.at) == 2)
    return finding("R-MRK-09");
  const std::string index =
      format::IndexName(internal::LoadId<AttemptId>(*marker, format::HeaderFields::kId.at));
  SEALPOINT_CHECK(index != case_.container.index_name && !files.contains(index));
  return ExpectedFinding{.rule = "R-MRK-05", .file = index};
}

// Step 3: the marker pins the index by length and digest.
std::optional<ExpectedFinding> DamageModel::ExpectIndex(const DamagedFiles& files) const {
  const std::string& name = case_.container.index_name;
  const Bytes& good = case_.container.files.at(name);
  const Bytes* index = FileBehind(files, name);
  const auto finding = [&](std::string rule) {
    return ExpectedFinding{.rule = std::move(rule), .file = name};
  };
  if (index == nullptr || index->size() < good.size()) return finding("R-MRK-05");
  if (index->size() > good.size()) return finding("R-MRK-08");
  if (*index == good) return std::nullopt;
  return finding("R-MRK-06");
}

// Steps 5 to 9.
void DamageModel::ExpectBlob(const std::string& name, const DamagedFiles& files,
                             Findings& found) const {
  const Bytes& good = case_.container.files.at(name);
  const Bytes* bad = FileBehind(files, name);
  if (bad == nullptr || bad->size() < good.size()) {
    found.push_back({.rule = "R-BLB-01", .file = name});
    return;
  }
  if (bad->size() > good.size()) found.push_back({.rule = "R-BLB-09", .file = name});
  const std::vector<BlobArea>& areas = areas_.at(name);
  BlobDamage damage{.name = name, .good = good, .bad = *bad};
  for (const BlobArea& area : areas) {
    if (area.kind == AreaKind::kGroup) damage.last_group = area.group;
    if (!FirstDifference(good, *bad, area.begin, area.end)) continue;
    if (area.kind == AreaKind::kGroupList) damage.group_list = true;
    if (area.kind == AreaKind::kHeader) damage.header = true;
    if (area.kind == AreaKind::kTrailer) damage.trailer = true;
    if (area.kind == AreaKind::kGroup) damage.groups.insert(area.group);
  }
  for (const BlobArea& area : areas) ExpectArea(damage, area, found);
}

// The table of places and rules. Which damage hides which follows from the pins: the index pins the
// group list and the trailer, the group list pins the groups, a group pins its chunks and locates
// the padding between them, the trailer pins the header and the manifest, and the header says how
// the manifest is read.
void DamageModel::ExpectArea(const BlobDamage& damage, const BlobArea& area,
                             Findings& found) const {
  const auto at = FirstDifference(damage.good, damage.bad, area.begin, area.end);
  if (!at) return;
  ExpectedFinding finding{.file = damage.name};
  const bool hides_this = damage.HidesRecord(area.record);
  const auto expect_padding = [&](bool is_required) {
    finding.rule = "R-BLB-08";
    finding.offset = at;
    finding.stops_load = false;
    finding.is_required = is_required;
  };
  switch (area.kind) {
    case AreaKind::kHeader:
      finding.stops_load = false;
      finding.rule = FirstDifference(damage.good, damage.bad, format::HeaderFields::kDigest.at,
                                     format::HeaderFields::kDigest.end())
                         ? "R-BLB-03"  // not the digest that the trailer has
                         : FindHeaderFault(ByteSpan(damage.bad), kBlobKind).value();
      finding.is_required = !damage.trailer;
      break;
    case AreaKind::kPlainChunk:
    case AreaKind::kCodedChunk:
      finding.rule = area.kind == AreaKind::kPlainChunk ? "R-CHK-02" : "R-CHK-01";
      finding.offset = area.begin;
      finding.owner = area.owner;
      finding.is_object = area.is_object;
      finding.is_required = !hides_this;
      break;
    case AreaKind::kChunkPadding:
      expect_padding(!hides_this && (area.record == 0 || !damage.HidesRecord(area.record - 1)));
      break;
    case AreaKind::kAreaPadding:
      expect_padding(!damage.trailer ||
                     !(damage.group_list || damage.groups.contains(damage.last_group)));
      break;
    case AreaKind::kGroupList:
      finding.rule = "R-BLB-05";
      break;
    case AreaKind::kGroupListPadding:
      expect_padding(!damage.group_list);
      break;
    case AreaKind::kGroup:
      finding.rule = "R-BLB-05";
      finding.is_required = !damage.group_list;
      break;
    case AreaKind::kManifestPadding:
      expect_padding(!damage.trailer);
      break;
    case AreaKind::kManifest:
      finding.rule = "R-BLB-06";
      finding.stops_load = false;
      finding.is_required = !damage.trailer && !damage.header;
      break;
    case AreaKind::kTrailer:
      finding.rule = FirstDifference(damage.good, damage.bad, area.end - format::kDigestSize,
                                     area.end)
                         ? "R-BLB-03"  // not the digest that the index pins
                         : "R-BLB-02";
      finding.stops_load = false;
      break;
  }
  found.push_back(std::move(finding));
}

std::string CodeOfRule(const std::string& rule) {
  static const std::map<std::string, std::string> codes = ReadCodes();
  return codes.at(rule);
}

bool IsExpected(const ExpectedFinding& expected, const Status& violation, bool with_place) {
  const Place& place = violation.place();
  if (place.rule != expected.rule || CodeName(violation.code()) != CodeOfRule(expected.rule) ||
      place.path != JoinPath(DamageStorage::kPath, expected.file)) {
    return false;
  }
  if (!expected.owner.empty()) {
    const std::string& named = expected.is_object ? place.object : place.tensor;
    const std::string& other = expected.is_object ? place.tensor : place.object;
    if (named != expected.owner || !other.empty()) return false;
  }
  return !with_place || !expected.offset || place.offset == expected.offset;
}

Verdict CombinedVerdict(const std::vector<Status>& violations) {
  const auto has = [&](std::initializer_list<Code> codes) {
    return std::any_of(violations.begin(), violations.end(), [&](const Status& violation) {
      return std::find(codes.begin(), codes.end(), violation.code()) != codes.end();
    });
  };
  if (violations.empty()) return Verdict::kCommitted;
  if (has({Code::kCorrupt})) return Verdict::kCorrupt;
  if (has({Code::kIncomplete})) return Verdict::kIncomplete;
  if (has({Code::kUncommitted})) return Verdict::kUncommitted;  // then it is the only one
  if (has({Code::kNotFound, Code::kNotACheckpoint, Code::kIo})) return Verdict::kUnreadable;
  return Verdict::kUnsupported;
}

}  // namespace sealpoint::testing
