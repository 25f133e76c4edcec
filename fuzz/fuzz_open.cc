// SPDX-License-Identifier: Apache-2.0
//
// Proves that no damage of a whole checkpoint makes opening, verifying or loading crash, take
// memory without bound or blame anything but the bytes, and that what verification calls committed
// loads.
#include <memory>
#include <string>

#include "fuzz/support/damage.h"
#include "fuzz/support/target.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/verify.h"
#include "tests/support/mini_container.h"

namespace sealpoint::fuzz {
namespace {

constexpr std::uint64_t kLoadMaxBytes = 4 * kMiB;

bool IsSmall(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.raw_bytes > kLoadMaxBytes - total) return false;
    total += tensor.raw_bytes;
  }
  for (const ObjectInfo& object : checkpoint.objects()) {
    if (object.size_bytes > kLoadMaxBytes - total) return false;
    total += object.size_bytes;
  }
  return true;
}

// All content, or the first error.
Result<testing::CorpusContent> LoadAll(const Checkpoint& checkpoint) {
  testing::CorpusContent content;
  ReadRequest request;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    Bytes& bytes = content.tensors[tensor.name];
    bytes.resize(tensor.raw_bytes);
    request.Add(tensor.name, MemoryView::MutableHost(bytes.data()));
  }
  const Result<LoadReport> report = checkpoint.Load(request);
  if (!report.ok()) return report.error();
  for (const ObjectInfo& object : checkpoint.objects()) {
    Result<Bytes> bytes = checkpoint.ReadObject(object.name);
    if (!bytes.ok()) return std::move(bytes).error();
    Require(bytes->size() == object.size_bytes, "an object of another size");
    content.objects[object.name] = std::move(bytes).value();
  }
  return content;
}

// Whether verification calls it committed.
bool JudgeByVerification(const std::shared_ptr<Storage>& storage, const Damaged& damaged) {
  const VerifyReport report = Verify("ckpt", {.storage = storage}).value();
  const bool committed = report.verdict == Verdict::kCommitted;
  Require(committed == report.violations.empty(), "verdict and violations differ");
  for (const Status& violation : report.violations) RequireJudgement(violation);
  if (!committed || damaged.is_resealed) return committed;
  for (const auto& [name, bytes] : damaged.good_files) {
    const auto found = damaged.files.find(name);
    Require(found != damaged.files.end() && found->second == bytes,
            "committed with other bytes in " + name);
  }
  return true;
}

void JudgeByLoading(const std::shared_ptr<Storage>& storage, const Damaged& damaged,
                    bool committed) {
  const auto checkpoint = Checkpoint::Open("ckpt", {.storage = storage});
  if (!checkpoint.ok()) {
    RequireJudgement(checkpoint.error());
    Require(!committed, "committed, but: " + checkpoint.error().ToString());
    return;
  }
  if (!IsSmall(**checkpoint)) return;
  const Result<testing::CorpusContent> loaded = LoadAll(**checkpoint);
  if (!loaded.ok()) {
    RequireJudgement(loaded.error());
    Require(!committed, "committed, but: " + loaded.error().ToString());
    return;
  }
  if (damaged.is_resealed) return;
  Require(loaded->tensors == damaged.good_content->tensors, "other tensors were loaded");
  Require(loaded->objects == damaged.good_content->objects, "other objects were loaded");
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input names a checkpoint and a list of damages; see fuzz/support/damage.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const auto storage = MemoryStorage();
  const fuzz::Damaged damaged = fuzz::MakeDamaged(fuzz::AsInput(data, size));
  testing::StoreFiles(*storage, "ckpt", damaged.files);
  fuzz::JudgeByLoading(storage, damaged, fuzz::JudgeByVerification(storage, damaged));
  return 0;
}
