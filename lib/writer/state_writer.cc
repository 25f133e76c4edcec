// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/state_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/layout/cuts.h"
#include "lib/layout/region_algebra.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::writer {
namespace {

transfer::ShardEncoding EncodingOf(const TensorSpec& tensor, const Region& region) {
  return {.raw_size = region.element_count() * ElementSize(tensor),
          .chunk_size = tensor.chunk_size_bytes,
          .element_size = ElementSize(tensor),
          .codec = tensor.codec,
          .codec_level = tensor.codec_level};
}

}  // namespace

StateWriter::Core::Core(pipeline::EngineParts& engine_parts, BlobWriterOptions writer_options)
    : engine(engine_parts),
      options(std::move(writer_options)),
      copies(engine.device, {.idle_queues = &engine.queues, .pinned_pool = engine.pool.get()}) {}

BlobStream::Context StateWriter::BlobContext() const {
  return {.engine = core_->engine,
          .copies = core_->copies,
          .tensors = *core_->tensors,
          .checks_copies = core_->checks_copies,
          .has_attributes = core_->has_attributes,
          // Waits for some bytes of any blob that are under way, and hashes them.
          .drain = [core = core_.get()]() -> Result<bool> {
            for (const auto& [group, blob] : core->open) {
              SEALPOINT_ASSIGN_OR_RETURN(const bool has_completed, blob.stream->CompleteOldest());
              if (has_completed) return true;
            }
            for (const OpenedBlob& blob : core->full) {
              SEALPOINT_ASSIGN_OR_RETURN(const bool has_completed, blob.stream->CompleteOldest());
              if (has_completed) return true;
            }
            return false;
          }};
}

Status StateWriter::CheckRuns() const {
  SEALPOINT_RETURN_IF_ERROR(core_->engine.CheckUsable());
  if (core_->is_finished) return InvalidArgument("the blob writer is finished or abandoned");
  if (!core_->failure.ok()) return core_->failure;
  return {};
}

void StateWriter::StopReading() {
  core_->copies.Stop();
  static_cast<void>(Release());
}

std::vector<StateWriter::OpenedBlob> StateWriter::Blobs() const {
  std::vector<OpenedBlob> blobs = core_->full;
  for (const auto& [group, blob] : core_->open) blobs.push_back(blob);
  return blobs;
}

Status StateWriter::Release() {
  Status first;
  for (const OpenedBlob& blob : core_->full) KeepFirst(first, blob.stream->Release());
  for (const auto& [group, blob] : core_->open) KeepFirst(first, blob.stream->Release());
  return first;
}

void StateWriter::StopCopies() {
  core_->is_finished = true;
  if (!core_->copies.WaitForAll().ok()) core_->copies.Stop();
  core_->full.clear();
  core_->open.clear();
}

Status StateWriter::AddTensor(const TensorSpec& tensor, const Region& region,
                              const MemoryView& source) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckTensorSpec(tensor));
    const auto has_elements = HasElements(tensor.shape, region);
    if (!has_elements.ok()) return has_elements.status().AtTensor(tensor.name);
    if (!*has_elements) return IsEmpty(tensor) ? DeclareEmpty(tensor) : Status();
    SEALPOINT_RETURN_IF_ERROR(CheckSource(tensor, region, source));
    core_->copies.ForgetStreams();
    Status added = AddBoxes(tensor, region, source);
    if (added.ok()) added = core_->copies.WaitForAll();
    if (added.ok()) added = Release();
    return std::move(added).AtTensor(tensor.name);
  });
}

Status StateWriter::AddBoxes(const TensorSpec& tensor, const Region& region,
                             const MemoryView& source) {
  if (tensor.stored_cuts.empty()) return AddChecked(tensor, region, source);
  SEALPOINT_RETURN_IF_ERROR(CheckCutCount(layout::CountCutBoxes(region, tensor.stored_cuts),
                                          core_->options.limits.shard_count_max));
  for (const Box& box : layout::CutRegion(region, tensor.stored_cuts)) {
    const MemoryView view = layout::ViewOfBox(source, region, box, ElementSize(tensor));
    SEALPOINT_RETURN_IF_ERROR(AddChecked(tensor, Region::Of(box), view));
  }
  return {};
}

Status StateWriter::AddState(const State& state) {
  core_->checks_copies = state.expected.checks_copies;
  core_->has_attributes = state.expected.has_attributes;
  is_adding_state_ = true;
  SEALPOINT_RETURN_IF_ERROR(Run([&] {
    return state.for_each_shard([this](const TensorSpec& tensor, const Region& region,
                                       const MemoryView& source, const std::byte* base) -> Status {
      return AddChecked(tensor, region, source, base).AtTensor(tensor.name);
    });
  }));
  SEALPOINT_RETURN_IF_ERROR(state.add_rest());
  is_adding_state_ = false;
  return Run([&]() -> Status {
    ReserveStaging(state.expected);
    SEALPOINT_RETURN_IF_ERROR(core_->copies.WaitForAll());
    return Release();
  });
}

Result<std::uint32_t> StateWriter::NumberOf(const TensorSpec& tensor) {
  const metadata::TensorAttributes now = AttributesOf(tensor);
  const std::optional<std::uint32_t> number = core_->tensors->Find(tensor.name);
  if (!number) return core_->tensors->Add(now);
  const metadata::TensorAttributes before = (*core_->tensors)[*number];
  const auto differs = [&](std::string_view what, const auto& its, const auto& first) {
    return InvalidArgument(what, " is ", its, ", but was ", first,
                           " when the tensor was first added")
        .AtTensor(tensor.name);
  };
  if (before.dtype != now.dtype) {
    return differs("dtype", DTypeName(now.dtype), DTypeName(before.dtype));
  }
  if (before.element_size != now.element_size) {
    return differs("element size", now.element_size, before.element_size);
  }
  if (!std::ranges::equal(before.shape, now.shape)) {
    return differs("shape", ShapeToString(tensor.shape),
                   ShapeToString({before.shape.begin(), before.shape.end()}));
  }
  if (before.chunk_size != now.chunk_size) {
    return differs("chunk size", now.chunk_size, before.chunk_size);
  }
  const bool is_placed_alike = std::ranges::equal(before.placement, now.placement);
  if (is_placed_alike && before.attributes == now.attributes) return *number;
  return InvalidArgument(
             is_placed_alike ? "attributes differ from those" : "placement differs from the one",
             " with which the tensor was first added")
      .AtTensor(tensor.name);
}

// A shard that no blob can hold whole is cut into runs at chunk borders; the runs of dense memory
// follow each other there, those of strided memory are gathered by SourceReader.
Status StateWriter::AddChecked(const TensorSpec& tensor, const Region& region,
                               const MemoryView& source, const std::byte* base) {
  const std::uint64_t size_max = core_->options.size_max_bytes;
  const std::uint64_t element_size = ElementSize(tensor);
  const std::uint64_t chunk_elements = tensor.chunk_size_bytes / element_size;
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t number, NumberOf(tensor));
  const std::uint64_t to_declare = BlobLayout::RoomToDeclare(AttributesOf(tensor));
  const std::uint64_t reserved =
      to_declare + format::kHeaderSize + format::kTrailerSize + format::kFileAlignment;
  const std::uint64_t payload_max = size_max > reserved ? size_max - reserved : 0;
  const std::uint64_t chunks_max =
      payload_max / (tensor.chunk_size_bytes + 2 * format::kRecordSize);
  const std::uint64_t elements_max = std::max<std::uint64_t>(chunks_max, 1) * chunk_elements;
  transfer::SourceReader reader(region, static_cast<std::uint32_t>(element_size), source);
  for (std::uint64_t begin = 0; begin < region.element_count(); begin += elements_max) {
    const std::uint64_t end = std::min(region.element_count(), begin + elements_max);
    const Region piece = layout::SubRun(region, begin, end);
    transfer::ShardEncoding encoding = EncodingOf(tensor, piece);
    // R-DLT-06 bounds chunks of changes as R-REC-03 does coded ones.
    if (base != nullptr && tensor.chunk_size_bytes <= kCodedChunkSizeMaxBytes) {
      encoding.base = base + begin * element_size;
    }
    if (core_->options.fingerprints) {
      encoding.part = std::make_shared<const fingerprint::Part>(
          tensor.shape, static_cast<std::uint32_t>(element_size), piece);
      encoding.tensor = number;
    }
    const std::uint64_t room = to_declare + BlobLayout::RoomForBytes(encoding);
    SEALPOINT_ASSIGN_OR_RETURN(BlobStream* const blob,
                               BlobWithRoom(tensor.group, room, !tensor.attributes.empty()));
    SEALPOINT_RETURN_IF_ERROR(blob->AddShard(number, piece, reader, encoding));
    Progress(encoding.raw_size);
  }
  return {};
}

Status StateWriter::AddEmptyTensor(const TensorSpec& tensor) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckTensorSpec(tensor));
    if (!IsEmpty(tensor)) {
      return InvalidArgument("no extent is 0; add its regions").AtTensor(tensor.name);
    }
    return DeclareEmpty(tensor);
  });
}

// Precondition: it passed CheckTensorSpec.
Status StateWriter::DeclareEmpty(const TensorSpec& tensor) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t number, NumberOf(tensor));
  const std::uint64_t room = BlobLayout::RoomToDeclare(AttributesOf(tensor));
  SEALPOINT_ASSIGN_OR_RETURN(BlobStream* const blob,
                             BlobWithRoom(tensor.group, room, !tensor.attributes.empty()));
  blob->AddEmptyTensor(number);
  return {};
}

Status StateWriter::AddNamedObject(const ObjectSpec& object, ByteSpan bytes) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckObjectSpec(object));
    if (bytes.data() == nullptr && !bytes.empty()) {
      return InvalidArgument("object bytes are null").AtObject(object.name);
    }
    if (!core_->objects.emplace(object.name).second) {
      return InvalidArgument("object added twice").AtObject(object.name);
    }
    const transfer::ShardEncoding encoding{.raw_size = bytes.size(),
                                           .chunk_size = kChunkSizeDefaultBytes,
                                           .element_size = 1,
                                           .codec = object.codec,
                                           .codec_level = 1};
    const std::uint64_t room =
        BlobLayout::RoomToDeclare(object) + BlobLayout::RoomForBytes(encoding);
    SEALPOINT_ASSIGN_OR_RETURN(BlobStream* const blob, BlobWithRoom("", room));
    SEALPOINT_RETURN_IF_ERROR(blob->AddObject(object, transfer::SourceReader(bytes), encoding));
    if (!is_adding_state_) SEALPOINT_RETURN_IF_ERROR(Release());
    Progress(encoding.raw_size);
    return {};
  });
}

Result<BlobStream*> StateWriter::BlobWithRoom(const std::string& group, std::uint64_t room,
                                              bool has_attributes) {
  core_->has_attributes = core_->has_attributes || has_attributes;
  const auto found = core_->open.find(group);
  if (found != core_->open.end()) {
    const OpenedBlob& current = found->second;
    const bool may_hold = !has_attributes || current.stream->announces_attributes();
    if (may_hold && current.stream->projected_size() + room <= core_->options.size_max_bytes) {
      return current.stream;
    }
    SEALPOINT_RETURN_IF_ERROR(CloseFull(current));
    core_->open.erase(found);
  }
  SEALPOINT_ASSIGN_OR_RETURN(OpenedBlob opened, OpenBlob());
  opened.group = group;
  core_->open.emplace(group, opened);
  return opened.stream;
}

// How many staging buffers are in use at once depends on timing: this maps what may be besides, so
// that no later save allocates. Only now, while the last bytes are being written: before the first
// one it would delay them all.
void StateWriter::ReserveStaging(const ExpectedState& expected) {
  if (expected.bytes == 0 || core_->open.empty()) return;
  const transfer::StreamTarget target = core_->open.begin()->second.stream->target();
  const bool borrows = target == transfer::StreamTarget::kBufferedFile;
  const std::uint64_t staged = expected.bytes - (borrows ? expected.borrowable_bytes : 0);
  device::StagingPool& pool = *core_->engine.pool;
  const std::uint64_t needed = staged / pool.buffer_size_bytes() + 1;
  // What is being copied from a device holds buffers besides those that are being written.
  const bool is_bounded = target != transfer::StreamTarget::kNone && !expected.has_device_memory;
  const std::uint64_t used_max =
      core_->open.size() * pipeline::FileStream::BuffersMax(*core_->engine.io);
  // This save has what it needs, so that it cannot fail by this.
  static_cast<void>(pool.Reserve(is_bounded ? std::min(needed, used_max) : needed));
}

void StateWriter::Progress(std::uint64_t bytes) {
  core_->bytes_staged += bytes;
  if (core_->options.on_bytes) core_->options.on_bytes(core_->bytes_staged);
}

}  // namespace sealpoint::internal::writer
