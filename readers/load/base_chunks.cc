// SPDX-License-Identifier: Apache-2.0
#include "readers/load/base_chunks.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/resize.h"

namespace sealpoint::internal::load {
namespace {

// Chunks that are decoded for one needed byte. A base that is cut by columns for a delta that is
// cut by rows has as many as it has columns, if none can be kept.
constexpr std::uint64_t kDecodedPerNeeded = 256;

}  // namespace

ByteSpan BaseChunks::Find(const CheckpointImpl& base, const transfer::PlanChunk& chunk) {
  const auto found = by_key_.find(KeyOf(base, chunk));
  if (found == by_key_.end()) return {};
  kept_.splice(kept_.begin(), kept_, found->second);
  return found->second->raw;
}

Status BaseChunks::CountDecoded(const transfer::PlanChunk& chunk) {
  decoded_bytes_ += chunk.raw_size;
  if (decoded_bytes_ <= free_bytes_ + kDecodedPerNeeded * needed_bytes_) return {};
  return MakeError(
      Code::kLimitExceeded, "reading ", needed_bytes_, " bytes of a delta decodes more than ",
      decoded_bytes_ - chunk.raw_size,
      " bytes of its bases, which are cut in other ways: raise memory_budget_bytes, of "
      "which a thread keeps ",
      size_max_, " bytes of decoded chunks");
}

Status BaseChunks::Keep(const CheckpointImpl& base, const transfer::PlanChunk& chunk,
                        ByteSpan raw) {
  const Key key = KeyOf(base, chunk);
  if (by_key_.contains(key)) return {};
  Bytes memory;
  while (!kept_.empty() && kept_bytes_ + raw.size() > size_max_) {
    kept_bytes_ -= kept_.back().raw.size();
    by_key_.erase(kept_.back().key);
    if (kept_.back().raw.size() == raw.size()) memory = std::move(kept_.back().raw);
    kept_.pop_back();
  }
  if (memory.size() != raw.size()) {
    SEALPOINT_RETURN_IF_ERROR(container::ResizeBytes(memory, raw.size()));
  }
  std::copy(raw.begin(), raw.end(), memory.begin());
  kept_bytes_ += raw.size();
  kept_.push_front({key, std::move(memory)});
  by_key_[key] = kept_.begin();
  return {};
}

Status KeepingDelivery::Begin(const transfer::PlanChunk& chunk, ByteSpan raw) {
  SEALPOINT_RETURN_IF_ERROR(chunks_.Keep(base_, chunk, raw));
  return inner_.Begin(chunk, raw);
}

}  // namespace sealpoint::internal::load
