// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/replica_digests.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/device/device_copies.h"
#include "lib/digest/hasher.h"
#include "lib/saver/write_sources.h"
#include "lib/transfer/source_reader.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::saver {
namespace {

// What a shard holds, and the digests of its chunks.
struct Item {
  writer::DeclaredView held;
  ShardSource source;
  std::uint64_t chunk_size = 0;  // bytes, a multiple of the element size
  std::vector<Digest> chunks{};
};

Item ItemOf(const Sources& sources, const PlannedShard& shard) {
  const writer::DeclaredView held =
      InternalAccess::SummaryOf(sources.declaration()).held(shard.slot);
  const std::uint64_t element_size = writer::ElementSize(held.kind);
  const std::uint64_t size = shard.run.size() * element_size;
  Item item{.held = held, .source = SourceOf(sources, shard)};
  item.chunk_size = held.kind.chunk_size_bytes / element_size * element_size;
  item.chunks.resize((size + item.chunk_size - 1) / item.chunk_size);
  return item;
}

transfer::SourceReader ReaderOf(const Item& item) {
  return {item.source.region, writer::ElementSize(item.held.kind), item.source.view};
}

void DigestOnHost(Item& item) {
  transfer::SourceReader reader = ReaderOf(item);
  digest::Hasher hasher;
  for (Digest& digest : item.chunks) {
    for (std::uint64_t left = std::min(item.chunk_size, reader.remaining_bytes()); left > 0;) {
      const ByteSpan part = reader.Next(left);
      hasher.Update(part);
      left -= part.size();
    }
    digest = hasher.Finish();
  }
}

// Computes digests of device memory.
class DeviceDigester {
 public:
  explicit DeviceDigester(pipeline::EngineParts& engine)
      : engine_(engine),
        copies_(engine.device, {.idle_queues = &engine.queues, .pinned_pool = engine.pool.get()}) {}

  // Digests on the device are there after Finish.
  Status Digest(Item& item);
  Status Finish() { return copies_.WaitForAll(); }

 private:
  Status DigestCopies(Item& item, transfer::SourceReader& reader);

  pipeline::EngineParts& engine_;
  Bytes copy_;
  device::DeviceCopies copies_;  // destroyed first: it waits for what fills the copy
};

Status DeviceDigester::Digest(Item& item) {
  const int device = item.source.view.device;
  SEALPOINT_RETURN_IF_ERROR(copies_.FollowStream(device, item.source.view.stream));
  transfer::SourceReader reader = ReaderOf(item);
  if (!reader.is_dense() || !engine_.device->CheckKernels(device).ok()) {
    return DigestCopies(item, reader);
  }
  const device::DeviceChunks chunks{.data = reader.position(),
                                    .size_bytes = reader.remaining_bytes(),
                                    .chunk_size_bytes = item.chunk_size};
  return copies_
      .Queue(device, item.chunks.size() * sizeof(sealpoint::Digest),
             [&](device::CopyQueue& queue) { return queue.QueueDigests(chunks, item.chunks); })
      .status();
}

Status DeviceDigester::DigestCopies(Item& item, transfer::SourceReader& reader) {
  for (sealpoint::Digest& digest : item.chunks) {
    copy_.resize(std::min(item.chunk_size, reader.remaining_bytes()));
    SEALPOINT_ASSIGN_OR_RETURN(
        const auto arrived,
        copies_.Queue(item.source.view.device, copy_.size(),
                      [&](device::CopyQueue& queue) { return reader.QueueNext(queue, copy_); }));
    SEALPOINT_RETURN_IF_ERROR(copies_.Wait(arrived));
    digest = ComputeDigest(copy_);
  }
  return {};
}

}  // namespace

Digest CombineDigests(std::span<const Digest> digests) {
  return ComputeDigest(std::as_bytes(digests));
}

Result<std::vector<Digest>> DigestShards(pipeline::EngineParts& engine, const Sources& sources,
                                         std::span<const PlannedShard> shards) {
  // Digests of a device are written to an item that must not move.
  std::deque<Item> items;
  std::vector<Item*> on_host;
  DeviceDigester on_device(engine);
  for (const PlannedShard& shard : shards) {
    Item& item = items.emplace_back(ItemOf(sources, shard));
    if (item.source.view.is_host()) {
      on_host.push_back(&item);
    } else {
      SEALPOINT_RETURN_IF_ERROR(on_device.Digest(item).AtTensor(item.held.name));
    }
  }
  SEALPOINT_RETURN_IF_ERROR(pipeline::ParallelFor(engine.options.io_thread_count + 1,
                                                  on_host.size(), [&](int, std::size_t i) {
                                                    DigestOnHost(*on_host[i]);
                                                    return Status();
                                                  }));
  SEALPOINT_RETURN_IF_ERROR(on_device.Finish());
  std::vector<Digest> digests;
  digests.reserve(items.size());
  for (const Item& item : items) digests.push_back(CombineDigests(item.chunks));
  return digests;
}

Result<std::vector<Digest>> DigestSlots(pipeline::EngineParts& engine, const Sources& sources,
                                        std::span<const std::size_t> slots) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(sources.declaration());
  std::vector<PlannedShard> shards;
  shards.reserve(slots.size());
  for (const std::size_t slot : slots) shards.push_back({slot, summary.held(slot).region().run});
  return DigestShards(engine, sources, shards);
}

Digest DigestObject(const ObjectSpec& object, ByteSpan bytes) {
  Bytes message;
  WireWriter out(message);
  out.Put(object.media_type);
  out.Put(ComputeDigest(bytes));
  return ComputeDigest(message);
}

}  // namespace sealpoint::internal::saver
