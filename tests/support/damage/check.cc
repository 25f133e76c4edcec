// SPDX-License-Identifier: Apache-2.0
#include "tests/support/damage/check.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/verify.h"

namespace sealpoint::testing {
namespace {

std::string Describe(const ExpectedFinding& finding) {
  return finding.rule + " in " + finding.file +
         (finding.offset ? " at " + std::to_string(*finding.offset) : "") +
         (finding.owner.empty() ? "" : " of " + finding.owner);
}

}  // namespace

Result<CorpusContent> LoadEverything(const std::shared_ptr<Storage>& storage) {
  auto opened = Checkpoint::Open(DamageStorage::kPath, {.storage = storage});
  if (!opened.ok()) return std::move(opened).error();
  const Checkpoint& checkpoint = **opened;
  CorpusContent content;
  ReadRequest request;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    Bytes& bytes = content.tensors[tensor.name];
    bytes.resize(tensor.raw_bytes);
    request.Add(tensor.name, MutableMemoryView::Host(bytes));
  }
  auto report = checkpoint.Load(request);
  if (!report.ok()) return std::move(report).error();
  for (const ObjectInfo& object : checkpoint.objects()) {
    Result<Bytes> bytes = checkpoint.ReadObject(object.name);
    if (!bytes.ok()) return std::move(bytes).error();
    content.objects[object.name] = std::move(bytes).value();
  }
  return content;
}

DamageChecker::DamageChecker(const DamageCase& one)
    : case_(one),
      model_(one),
      storage_(std::make_shared<DamageStorage>(AsDamagedFiles(one.container.files))) {}

void DamageChecker::Restore(const std::string& name) {
  const auto found = case_.container.files.find(name);
  if (found == case_.container.files.end()) {
    storage_->files().erase(name);
  } else {
    storage_->files()[name] = {.bytes = found->second};
  }
}

void DamageChecker::Restore() { storage_->files() = AsDamagedFiles(case_.container.files); }

std::string DamageChecker::Verification(const std::set<std::string>& changed) {
  const std::vector<ExpectedFinding> expected = model_.Expect(storage_->files(), changed);
  const VerifyReport report = Verify(DamageStorage::kPath, {.storage = storage_}).value();
  std::string wrong;
  for (const ExpectedFinding& finding : expected) {
    if (!finding.is_required) continue;
    const bool is_found =
        std::any_of(report.violations.begin(), report.violations.end(),
                    [&](const Status& violation) { return IsExpected(finding, violation, true); });
    if (!is_found) wrong += "not reported: " + Describe(finding) + "\n";
  }
  for (const Status& violation : report.violations) {
    const bool is_expected = std::any_of(
        expected.begin(), expected.end(),
        [&](const ExpectedFinding& finding) { return IsExpected(finding, violation, true); });
    if (!is_expected || !wrong.empty()) wrong += "reported: " + violation.ToString() + "\n";
  }
  if (report.verdict != CombinedVerdict(report.violations) ||
      expected.empty() != (report.verdict == Verdict::kCommitted)) {
    wrong += "verdict " + std::string(VerdictName(report.verdict)) + "\n";
  }
  return wrong;
}

std::string DamageChecker::Load(const std::set<std::string>& changed) {
  std::vector<ExpectedFinding> expected = model_.Expect(storage_->files(), changed);
  std::erase_if(expected, [](const ExpectedFinding& finding) { return !finding.stops_load; });
  const Result<CorpusContent> loaded = LoadEverything(storage_);
  if (expected.empty()) {
    if (!loaded.ok()) return "loading failed: " + loaded.error().ToString() + "\n";
    const bool is_equal =
        loaded->tensors == case_.content.tensors && loaded->objects == case_.content.objects;
    return is_equal ? "" : "loading gave other bytes\n";
  }
  if (loaded.ok()) return "loading did not fail: " + Describe(expected.front()) + "\n";
  const bool is_expected = std::any_of(
      expected.begin(), expected.end(),
      [&](const ExpectedFinding& finding) { return IsExpected(finding, loaded.error(), false); });
  return is_expected ? "" : "loading failed otherwise: " + loaded.error().ToString() + "\n";
}

std::string DamageChecker::Both(const std::set<std::string>& changed) {
  return Verification(changed) + Load(changed);
}

}  // namespace sealpoint::testing
