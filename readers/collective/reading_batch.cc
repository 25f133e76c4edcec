// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_batch.h"

#include "readers/collective/requested_bytes.h"

namespace sealpoint::internal::collective {
namespace {

class Divider {
 public:
  Divider(const load::ReadPlanData& plan, const std::vector<transfer::PlanRange>& ranges,
          const std::vector<ChunkToRead>& to_read, const BatchLimits& limits)
      : plan_(plan), ranges_(ranges), to_read_(to_read), limits_(limits) {}

  std::vector<ReadingBatch> Run() {
    for (std::size_t i = 0; i < to_read_.size(); ++i) {
      if (!Fits(SizeOf(to_read_[i]))) CutAt({i, 0});
      AddRead(to_read_[i]);
      for (std::size_t j = 0; j < to_read_[i].requesters.size(); ++j) {
        const std::uint64_t size = to_read_[i].requesters[j].parts.size_bytes();
        if (j > 0 && !Fits(size)) CutAt({i, j});
        size_ += size;
      }
    }
    if (!to_read_.empty()) CutAt({to_read_.size(), 0});
    return std::move(batches_);
  }

 private:
  bool Fits(std::uint64_t size) const {
    return size_ == 0 || size_ + size <= limits_.size_max_bytes;
  }

  std::uint64_t HeldOf(const ChunkToRead& to_read) const {
    return limits_.holds_chunks ? plan_.chunks[to_read.chunk].raw_size : 0;
  }
  std::uint64_t SizeOf(const ChunkToRead& to_read) const {
    std::uint64_t size = HeldOf(to_read);
    for (const ChunkToRead::Requester& requester : to_read.requesters) {
      size += requester.parts.size_bytes();
    }
    return size;
  }

  void CutAt(SendingPlace place) {
    batch_.end = place;
    const std::size_t first_range = batch_.first_range + batch_.ranges.size();
    batches_.push_back(std::move(batch_));
    batch_ = {.begin = place, .first_range = first_range};
    size_ = 0;
  }

  void AddRead(const ChunkToRead& to_read) {
    size_ += HeldOf(to_read);
    std::vector<transfer::PlanRange>& ranges = batch_.ranges;
    const transfer::PlanChunk& chunk = plan_.chunks[to_read.chunk];
    const bool goes_on = !ranges.empty() && range_ == to_read.range &&
                         ranges.back().first_chunk + ranges.back().chunk_count == to_read.chunk &&
                         ranges.back().size + chunk.stored_size <= limits_.range_size_max_bytes;
    const std::size_t first = goes_on ? ranges.back().first_chunk : to_read.chunk;
    const transfer::PlanRange range =
        PartOf(plan_, ranges_[to_read.range], first, to_read.chunk - first + 1);
    if (goes_on) {
      ranges.back() = range;
    } else {
      ranges.push_back(range);
    }
    range_ = to_read.range;
  }

  const load::ReadPlanData& plan_;
  const std::vector<transfer::PlanRange>& ranges_;
  const std::vector<ChunkToRead>& to_read_;
  const BatchLimits limits_;
  std::vector<ReadingBatch> batches_;
  ReadingBatch batch_;
  std::uint64_t size_ = 0;  // of that batch
  std::size_t range_ = 0;   // of its last chunk
};

}  // namespace

std::vector<ReadingBatch> DivideIntoBatches(const load::ReadPlanData& plan,
                                            const std::vector<transfer::PlanRange>& ranges,
                                            const std::vector<ChunkToRead>& to_read,
                                            const BatchLimits& limits) {
  return Divider(plan, ranges, to_read, limits).Run();
}

}  // namespace sealpoint::internal::collective
