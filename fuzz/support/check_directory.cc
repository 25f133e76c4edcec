// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/check_directory.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "fuzz/support/target.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/digest.h"
#include "sealpoint/verify.h"
#include "tests/conformance/load_all.h"

namespace sealpoint::fuzz {
namespace {

constexpr const char* kPath = "ckpt";
constexpr std::uint64_t kLoadMaxBytes = 16 * kMiB;  // of all content at once
constexpr std::uint64_t kPartMaxBytes = 1 * kMiB;   // of a tensor that is larger

VerifyReport VerifyAt(const std::shared_ptr<Storage>& storage, VerifyLevel level, int threads) {
  VerifyReport report =
      Verify(kPath, {.level = level, .threads = threads, .storage = storage}).value();
  Require((report.verdict == Verdict::kCommitted) == report.violations.empty(),
          "verdict and violations differ");
  for (const Status& violation : report.violations) RequireAnswer(violation);
  return report;
}

// One input in eight, since each verification maps its own buffers; which, the files decide.
bool IsWorthEveryLevel(const Suspect& suspect) {
  const auto first = suspect.files.begin();
  return first != suspect.files.end() &&
         std::to_integer<unsigned>(ComputeDigest(first->second).bytes[0]) % 8 == 0;
}

void CheckOtherWays(const std::shared_ptr<Storage>& storage, const VerifyReport& full) {
  const VerifyReport again = VerifyAt(storage, VerifyLevel::kFull, 2);
  Require(full.violations == again.violations && full.notes == again.notes,
          "two threads find something else than one");
  const VerifyReport structure = VerifyAt(storage, VerifyLevel::kStructure, 1);
  const VerifyReport files = VerifyAt(storage, VerifyLevel::kFiles, 1);
  Require(structure.violations.size() <= full.violations.size() &&
              files.violations.size() <= structure.violations.size(),
          "a level that reads less finds more");
}

// True if full verification calls it committed.
bool CheckByVerification(const std::shared_ptr<Storage>& storage, const Suspect& suspect) {
  const VerifyReport full = VerifyAt(storage, VerifyLevel::kFull, 1);
  if (IsWorthEveryLevel(suspect)) CheckOtherWays(storage, full);
  if (full.verdict != Verdict::kCommitted) return false;
  for (const auto& [name, bytes] : suspect.pinned_files) {
    const auto found = suspect.files.find(name);
    Require(found != suspect.files.end() && found->second == bytes,
            "committed with other bytes in " + name);
  }
  return true;
}

std::uint64_t TotalBytes(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) total += tensor.raw_bytes;
  for (const ObjectInfo& object : checkpoint.objects()) total += object.size_bytes;
  return total;
}

// Loads parts of a tensor, whatever size it declares: from its begin, middle and end.
std::vector<Region> PartsOf(const TensorInfo& tensor) {
  if (tensor.raw_bytes == 0) return {};
  const Region whole = Region::Whole(tensor.shape);
  const std::uint64_t count = whole.run.end;
  const std::uint64_t part = std::min(count, kPartMaxBytes / tensor.element_size);
  std::vector<Region> parts;
  for (const std::uint64_t begin : {std::uint64_t{0}, (count - part) / 2, count - part}) {
    parts.push_back({whole.box, {begin, begin + part}});
  }
  return parts;
}

// As LoadAll, of content that is larger than what one input may take in memory.
Status LoadParts(const Checkpoint& checkpoint) {
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    for (const Region& part : PartsOf(tensor)) {
      Bytes bytes(part.element_count() * tensor.element_size);
      ReadRequest request;
      request.Add(tensor.name, part, MutableMemoryView::Host(bytes));
      const auto report = checkpoint.Load(request, LoadContract::Partial());
      if (!report.ok()) return report.error();
    }
  }
  for (const ObjectInfo& object : checkpoint.objects()) {
    if (object.size_bytes > kLoadMaxBytes) continue;
    const Result<Bytes> bytes = checkpoint.ReadObject(object.name);
    if (!bytes.ok()) return bytes.error();
  }
  return {};
}

void CheckError(const Status& error, bool committed) {
  RequireAnswer(error);
  Require(!committed, "committed, but: " + error.ToString());
}

void CheckByLoading(const std::shared_ptr<Storage>& storage, const Suspect& suspect,
                    bool committed) {
  const auto checkpoint = Checkpoint::Open(kPath, {.storage = storage});
  if (!checkpoint.ok()) return CheckError(checkpoint.error(), committed);
  if (TotalBytes(**checkpoint) > kLoadMaxBytes) {
    const Status loaded = LoadParts(**checkpoint);
    if (!loaded.ok()) CheckError(loaded, committed);
    return;
  }
  const Result<testing::CorpusContent> loaded = testing::LoadAll(**checkpoint);
  if (!loaded.ok()) return CheckError(loaded.error(), committed);
  if (suspect.content == nullptr) return;
  Require(loaded->tensors == suspect.content->tensors, "other tensors were loaded");
  Require(loaded->objects == suspect.content->objects, "other objects were loaded");
}

}  // namespace

void CheckDirectory(const Suspect& suspect) {
  const auto storage = MemoryStorage();
  testing::StoreFiles(*storage, kPath, suspect.files);
  CheckByLoading(storage, suspect, CheckByVerification(storage, suspect));
}

}  // namespace sealpoint::fuzz
