// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/write_sources.h"

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/saver/reuse.h"
#include "lib/transfer/intake_set.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/staging_estimate.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::saver {
namespace {

writer::ExpectedState ExpectedOf(const SaverOptions& options, const SavePlan& plan,
                                 const Sources& sources, bool has_base) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(sources.declaration());
  writer::ExpectedState expected{.bytes = plan.tensor_bytes,
                                 .checks_copies = options.check_device_copies,
                                 .has_attributes = summary.has_attributes()};
  for (const PlannedShard& shard : plan.shards) {
    const MemoryView& view = *sources.tensors()[shard.slot];
    const TensorSpec& kind = summary.held(shard.slot).kind;
    const std::uint64_t size = shard.run.size() * writer::ElementSize(kind);
    const bool is_plain =
        !has_base && view.is_host() && view.is_dense() && kind.codec == Codec::kNone;
    if (is_plain && size >= transfer::kBorrowedSizeMin) {
      expected.borrowable_bytes += size;
    }
    expected.has_device_memory = expected.has_device_memory || !view.is_host();
  }
  return expected;
}

// The bytes that the base has for a planned shard; null if they are not dense host memory.
const std::byte* BaseOf(const std::optional<SaveBase>& base, const PlannedShard& shard) {
  if (!base || !base->sources->tensors()[shard.slot]) return nullptr;
  const MemoryView view = SourceOf(*base->sources, shard).view;
  return view.is_host() && view.is_dense() ? view.data : nullptr;
}

// An empty tensor is in no frozen group, of which blobs are linked or dropped as a whole.
void CopyEmptySpec(const SaverOptions& options, const writer::DeclarationSummary& summary,
                   std::size_t slot, TensorSpec& tensor) {
  summary.held(slot).CopyTo(tensor);
  if (IsFrozen(options, tensor.group)) tensor.group.clear();
}

}  // namespace

Status CheckSources(const Sources& sources) {
  const Declaration& declaration = sources.declaration();
  if (sources.tensors().size() != declaration.tensors().size() ||
      sources.objects().size() != declaration.objects().size()) {
    return InvalidArgument("the declaration changed after its sources were made");
  }
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  for (std::size_t slot = 0; slot < summary.slots().size(); ++slot) {
    if (!summary.slots()[slot].is_empty && !sources.tensors()[slot]) {
      return InvalidArgument("no memory is bound").AtTensor(summary.held(slot).name);
    }
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    if (!sources.objects()[i]) {
      return InvalidArgument("no bytes are bound").AtObject(declaration.objects()[i].name);
    }
  }
  return {};
}

Status CheckBase(const SaveOptions& options, const Sources& sources) {
  if (!options.base) return {};
  if (options.base->sources == nullptr) return InvalidArgument("the base has no sources");
  const Sources& base = *options.base->sources;
  SEALPOINT_RETURN_IF_ERROR(Status(base.failure()).Prefixed("the sources of the base"));
  if (base.tensors().size() != base.declaration().tensors().size()) {
    return InvalidArgument("the declaration of the base changed after its sources were made");
  }
  const writer::DeclarationSummary& expected = InternalAccess::SummaryOf(sources.declaration());
  const writer::DeclarationSummary& found = InternalAccess::SummaryOf(base.declaration());
  if (expected.slots().size() != found.slots().size()) {
    return InvalidArgument("the base's declaration has ", found.slots().size(),
                           " slots, expected the ", expected.slots().size(), " of the save");
  }
  for (std::size_t slot = 0; slot < found.slots().size(); ++slot) {
    const writer::DeclaredView a = expected.held(slot);
    const writer::DeclaredView b = found.held(slot);
    const bool is_same = a.name == b.name && a.kind.dtype == b.kind.dtype &&
                         writer::ElementSize(a.kind) == writer::ElementSize(b.kind) &&
                         a.is_empty() == b.is_empty() && (a.is_empty() || a.region() == b.region());
    if (is_same) continue;
    return InvalidArgument("slot ", slot, " of the base's declaration is another one")
        .AtTensor(a.name);
  }
  return {};
}

std::string LearnedGroupName(std::uint32_t number) { return StrCat(kLearnedGroupPrefix, number); }

void CopySpec(const writer::DeclarationSummary& summary, const PlannedShard& shard,
              TensorSpec& tensor) {
  summary.held(shard.slot).CopyTo(tensor);
  if (shard.learned != 0) tensor.group = LearnedGroupName(shard.learned);
}

ShardSource SourceOf(const Sources& sources, const PlannedShard& shard) {
  const writer::DeclaredView held =
      InternalAccess::SummaryOf(sources.declaration()).held(shard.slot);
  ShardSource source{.region = held.region(), .view = *sources.tensors()[shard.slot]};
  if (source.view.is_dense()) {
    const std::uint64_t element_size = writer::ElementSize(held.kind);
    source.view.data += (shard.run.begin - source.region.run.begin) * element_size;
    source.view.size_bytes = shard.run.size() * element_size;
  }
  source.region.run = shard.run;
  return source;
}

Status WriteSources(const SaverOptions& options, writer::StateWriter& writer, const SavePlan& plan,
                    const Sources& sources, const std::optional<SaveBase>& base) {
  const Declaration& declaration = sources.declaration();
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  TensorSpec tensor;
  const auto for_each_shard = [&](const writer::StateWriter::AddShard& add) -> Status {
    for (const PlannedShard& shard : plan.shards) {
      CopySpec(summary, shard, tensor);
      const ShardSource source = SourceOf(sources, shard);
      SEALPOINT_RETURN_IF_ERROR(add(tensor, source.region, source.view, BaseOf(base, shard)));
    }
    return {};
  };
  const auto add_rest = [&]() -> Status {
    for (const std::size_t slot : plan.empty_slots) {
      CopyEmptySpec(options, summary, slot, tensor);
      SEALPOINT_RETURN_IF_ERROR(writer.AddEmptyTensor(tensor));
    }
    for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
      const ObjectSpec& object = declaration.objects()[i];
      SEALPOINT_RETURN_IF_ERROR(writer.AddNamedObject(object, *sources.objects()[i]));
    }
    return {};
  };
  return writer.AddState({.expected = ExpectedOf(options, plan, sources, base.has_value()),
                          .for_each_shard = for_each_shard,
                          .add_rest = add_rest});
}

std::uint64_t BuffersFor(const pipeline::EngineParts& engine, const SaverOptions& options,
                         const SavePlan& plan, const Sources& sources,
                         std::uint64_t part_size_bytes) {
  writer::StagingEstimate estimate(options.blob_size_max_bytes, engine.pool->buffer_size_bytes());
  const Declaration& declaration = sources.declaration();
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  TensorSpec tensor;
  for (const PlannedShard& shard : plan.shards) {
    CopySpec(summary, shard, tensor);
    estimate.AddShard(tensor, (shard.run.end - shard.run.begin) * writer::ElementSize(tensor));
  }
  for (const std::size_t slot : plan.empty_slots) {
    CopyEmptySpec(options, summary, slot, tensor);
    estimate.AddEmpty(tensor);
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    const ObjectSpec& object = declaration.objects()[i];
    estimate.AddObject(object, sources.objects()[i]->size());
  }
  return estimate.buffer_count(engine.BuffersOf(part_size_bytes));
}

}  // namespace sealpoint::internal::saver
