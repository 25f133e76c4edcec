// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DAMAGE_CHECK_H_
#define SEALPOINT_TESTS_SUPPORT_DAMAGE_CHECK_H_

#include <memory>
#include <set>
#include <string>

#include "tests/support/damage/model.h"

namespace sealpoint::testing {

// Loads all tensors in one read, then each object. Returns the first error, or the content.
Result<CorpusContent> LoadEverything(const std::shared_ptr<Storage>& storage);

// A checkpoint in memory that is damaged and checked many times.
class DamageChecker {
 public:
  explicit DamageChecker(const DamageCase& one);

  DamageStorage& storage() { return *storage_; }
  std::shared_ptr<Storage> shared_storage() const { return storage_; }
  Bytes& bytes(const std::string& name) { return storage_->bytes(name); }
  const Bytes& good(const std::string& name) const { return case_.container.files.at(name); }
  const DamageModel& model() const { return model_; }

  // Restores one file, or all of them.
  void Restore(const std::string& name);
  void Restore();

  // Compares full verification, and loading everything, with the model's findings for the files as
  // they are; only `changed` may differ from the good ones. Returns "" or the difference. A change
  // that leaves all bytes as they were must verify as good.
  std::string Verification(const std::set<std::string>& changed);
  std::string Load(const std::set<std::string>& changed);
  std::string Both(const std::set<std::string>& changed);

 private:
  const DamageCase& case_;
  const DamageModel model_;
  std::shared_ptr<DamageStorage> storage_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DAMAGE_CHECK_H_
