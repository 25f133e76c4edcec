// SPDX-License-Identifier: Apache-2.0
//
// Proves for any declarations, by any number of writers, that they are refused with a clean error
// and no checkpoint exists, or that what is committed verifies and loads as it was added.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/support/target.h"
#include "fuzz/support/write_state.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/verify.h"
#include "tests/conformance/load_all.h"

namespace sealpoint::fuzz {
namespace {

constexpr const char* kPath = "c";
constexpr std::uint64_t kBuffers = 12;  // more than writers and groups, as the engine asks for

Status WritePart(const WrittenPart& part, const WrittenState& state, BlobWriter& writer) {
  if (part.tensor == nullptr) {
    return writer.AddObject({.name = part.object->name,
                             .media_type = part.object->media_type,
                             .codec = part.object->codec},
                            part.object->bytes);
  }
  if (!part.region) return writer.AddEmpty(part.tensor->spec);
  const Bytes memory = SourceMemory(*part.tensor, *part.region, part.layout);
  MemoryView view = MemoryView::Host(memory, part.layout.strides, part.layout.origin);
  if (view.is_dense()) {
    view.data += part.layout.origin;
    view.size_bytes = part.region->element_count() * ElementSizeOf(part.tensor->spec);
  }
  if (state.has_null_source) view.data = nullptr;
  return writer.Add(part.tensor->spec, *part.region, view);
}

Result<std::vector<BlobSummary>> WriteParts(Engine& engine, const WrittenState& state,
                                            std::size_t number) {
  auto writer = BlobWriter::Create(engine, kPath,
                                   {.size_max_bytes = state.blob_size_max,
                                    .attempt = state.blob_attempt,
                                    .step = state.commit.step});
  if (!writer.ok()) return writer.error();
  for (const WrittenPart& part : state.parts) {
    if (part.writer != number) continue;
    Status status = WritePart(part, state, **writer);
    if (!status.ok()) return status;
  }
  return (*writer)->Finish();
}

// One writer after the other, then the commit.
Result<CommitInfo> WriteAll(const std::shared_ptr<Storage>& storage, const WrittenState& state) {
  const auto engine = Engine::Create({.memory_budget_bytes = kBuffers * state.buffer_size,
                                      .staging_buffer_size_bytes = state.buffer_size,
                                      .storage = storage})
                          .value();
  std::vector<BlobSummary> summaries;
  for (std::size_t number = 0; number < state.writer_count; ++number) {
    auto written = WriteParts(*engine, state, number);
    if (!written.ok()) return std::move(written).error();
    for (BlobSummary& summary : *written) {
      // As it would reach another process.
      summaries.push_back(BlobSummary::Deserialize(summary.Serialize()).value());
      Require(summaries.back() == summary, "a summary changes on its way");
      Require(ReadSummary(*storage, kPath, summary.blob()).value() == summary,
              "a blob holds another summary than its writer gave");
    }
  }
  return Commit(*storage, kPath, state.commit, summaries);
}

void CheckRefusal(const std::shared_ptr<Storage>& storage, const Status& error,
                  const WrittenState& state) {
  Require(!state.is_legal, "a legal state is refused: " + error.ToString());
  Require(error.code() == Code::kInvalidArgument || error.code() == Code::kLimitExceeded,
          "refused with another error: " + error.ToString());
  const auto opened = Checkpoint::Open(kPath, {.storage = storage});
  Require(!opened.ok() && (opened.error().code() == Code::kUncommitted ||
                           opened.error().code() == Code::kNotACheckpoint),
          "a refused state left a checkpoint");
}

void CheckDescription(const Checkpoint& checkpoint, const WrittenState& state,
                      const CommitInfo& info) {
  Require(checkpoint.attempt() == info.attempt && checkpoint.step() == state.commit.step &&
              checkpoint.mesh() == state.commit.mesh,
          "attempt, step or mesh differ");
  Require(checkpoint.sequence() == (state.commit.parent ? state.commit.parent->sequence + 1 : 1),
          "another sequence than behind the parent");
  for (const auto& tensor : state.tensors) {
    const auto info_of = checkpoint.FindTensor(tensor->spec.name);
    Require(info_of && info_of->dtype == tensor->spec.dtype && info_of->shape == tensor->spec.shape,
            "a tensor has another dtype or shape");
    Require(info_of->chunk_size_bytes == tensor->spec.chunk_size_bytes &&
                info_of->placement == tensor->spec.placement,
            "a tensor has another chunk size or placement");
  }
}

void CheckCommitted(const std::shared_ptr<Storage>& storage, const WrittenState& state,
                    const CommitInfo& info) {
  Require(state.is_legal, "an illegal state is committed");
  const VerifyReport report = Verify(kPath, {.storage = storage}).value();
  for (const Status& violation : report.violations) Require(false, violation.ToString());
  Require(report.verdict == Verdict::kCommitted && report.notes.empty(), "something is left over");
  const auto checkpoint = Checkpoint::Open(kPath, {.storage = storage}).value();
  CheckDescription(*checkpoint, state, info);
  const Result<testing::CorpusContent> loaded = testing::LoadAll(*checkpoint);
  Require(loaded.ok(), "committed, but: " + loaded.status().ToString());
  testing::CorpusContent expected;
  for (const auto& tensor : state.tensors) expected.tensors[tensor->spec.name] = tensor->bytes;
  for (const auto& object : state.objects) expected.objects[object->name] = object->bytes;
  Require(loaded->tensors == expected.tensors, "a tensor comes back changed");
  Require(loaded->objects == expected.objects, "an object comes back changed");
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input describes a state and who writes which part of it; see fuzz/support/write_state.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const fuzz::WrittenState state = fuzz::TakeState(fuzz::AsInput(data, size));
  const auto storage = MemoryStorage();
  fuzz::Require(storage->CreateDirectories(fuzz::kPath).ok(), "no directory");
  const Result<CommitInfo> info = fuzz::WriteAll(storage, state);
  if (info.ok()) {
    fuzz::CheckCommitted(storage, state, *info);
  } else {
    fuzz::CheckRefusal(storage, info.error(), state);
  }
  return 0;
}
