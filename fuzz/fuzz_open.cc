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

// The first error.
Status LoadAll(const Checkpoint& checkpoint) {
  ReadRequest request;
  std::vector<Bytes> memory;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    request.Add(tensor.name, MemoryView::MutableHost(memory.emplace_back(tensor.raw_bytes).data()));
  }
  const Result<LoadReport> report = checkpoint.Load(request);
  if (!report.ok()) return report.error();
  for (const ObjectInfo& object : checkpoint.objects()) {
    const Result<Bytes> bytes = checkpoint.ReadObject(object.name);
    if (!bytes.ok()) return bytes.error();
    Require(bytes->size() == object.size_bytes, "an object of another size");
  }
  return {};
}

void Judge(const std::shared_ptr<Storage>& storage, const std::string& path) {
  const VerifyReport report = Verify(path, {.storage = storage}).value();
  const bool committed = report.verdict == Verdict::kCommitted;
  Require(committed == report.violations.empty(), "verdict and violations differ");
  for (const Status& violation : report.violations) RequireJudgement(violation);

  const auto checkpoint = Checkpoint::Open(path, {.storage = storage});
  if (!checkpoint.ok()) {
    RequireJudgement(checkpoint.error());
    Require(!committed, "committed, but: " + checkpoint.error().ToString());
    return;
  }
  if (!IsSmall(**checkpoint)) return;
  const Status loaded = LoadAll(**checkpoint);
  if (loaded.ok()) return;
  RequireJudgement(loaded);
  Require(!committed, "committed, but: " + loaded.ToString());
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input names a checkpoint and a list of damages; see fuzz/support/damage.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const auto storage = MemoryStorage();
  testing::StoreFiles(*storage, "ckpt", fuzz::MakeDamaged(fuzz::AsInput(data, size)));
  fuzz::Judge(storage, "ckpt");
  return 0;
}
