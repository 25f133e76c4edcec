// SPDX-License-Identifier: Apache-2.0
//
// The violations that a reader must report for a damaged checkpoint, derived from the place of the
// damage by the rules of spec/reader-rules.md. The codes are read from the table in that file.
#ifndef SEALPOINT_TESTS_SUPPORT_DAMAGE_MODEL_H_
#define SEALPOINT_TESTS_SUPPORT_DAMAGE_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sealpoint/status.h"
#include "tests/support/damage/areas.h"
#include "tests/support/damage/storage.h"

namespace sealpoint::testing {

struct ExpectedFinding {
  std::string rule{};
  std::string file{};                     // name in the directory
  std::optional<std::uint64_t> offset{};  // of a chunk or of a byte of padding
  std::string owner{};                    // tensor or object of a chunk
  bool is_object = false;                 // what the owner is
  bool is_required = true;                // false if other damage hides it
  bool stops_load = true;                 // loading everything touches it
};

class DamageModel {
 public:
  explicit DamageModel(const DamageCase& one);

  // What full verification must find. Only the files in `changed` differ from the good ones. Empty
  // if no byte differs.
  std::vector<ExpectedFinding> Expect(const DamagedFiles& files,
                                      const std::set<std::string>& changed) const;

  const std::map<std::string, std::vector<BlobArea>>& areas() const { return areas_; }
  const DamageCase& damage_case() const { return case_; }

 private:
  using Findings = std::vector<ExpectedFinding>;
  struct BlobDamage;

  std::optional<ExpectedFinding> ExpectMarker(const DamagedFiles& files) const;
  std::optional<ExpectedFinding> ExpectIndex(const DamagedFiles& files) const;
  void ExpectBlob(const std::string& name, const DamagedFiles& files, Findings& found) const;
  void ExpectArea(const BlobDamage& damage, const BlobArea& area, Findings& found) const;

  const DamageCase& case_;
  std::map<std::string, std::vector<BlobArea>> areas_;
};

// The code of a rule, from the table of spec/reader-rules.md.
std::string CodeOfRule(const std::string& rule);

// True if `violation` is the expected one in rule, code, file and whatever else is stated.
bool IsExpected(const ExpectedFinding& expected, const Status& violation, bool with_place);

// The verdict for the violations found, by spec/reader-rules.md section 5.
Verdict CombinedVerdict(const std::vector<Status>& violations);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DAMAGE_MODEL_H_
