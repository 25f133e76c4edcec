// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "sealpoint/object_store.h"

namespace sealpoint {
namespace internal::storage {
namespace {

// A block of a file. Whoever comes first reads it, and all others wait for that.
struct Block {
  std::mutex mutex;
  bool is_filled = false;
  Bytes bytes;
};

class Blocks final : public BlockCache, public std::enable_shared_from_this<Blocks> {
 public:
  Blocks(std::uint64_t block_size, std::size_t count_max)
      : block_size_(block_size), count_max_(count_max) {}

  std::unique_ptr<ReadableFile> Wrap(std::unique_ptr<ReadableFile> file) override;

  std::uint64_t block_size() const { return block_size_; }

  // The block, which may still be empty.
  std::shared_ptr<Block> Find(std::uint64_t file, std::uint64_t index) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
      return kept.file == file && kept.index == index;
    });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front().block;
    }
    kept_.push_front({.file = file, .index = index, .block = std::make_shared<Block>()});
    std::shared_ptr<Block> made = kept_.front().block;
    if (kept_.size() > count_max_) kept_.pop_back();
    return made;
  }

  void Drop(std::uint64_t file) {
    const std::lock_guard lock(mutex_);
    kept_.remove_if([file](const Kept& kept) { return kept.file == file; });
  }

 private:
  struct Kept {
    std::uint64_t file = 0;
    std::uint64_t index = 0;
    std::shared_ptr<Block> block;
  };

  const std::uint64_t block_size_;
  const std::size_t count_max_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the one that was used last comes first
  std::uint64_t file_count_ = 0;
};

class BlockFile final : public ReadableFile {
 public:
  BlockFile(std::shared_ptr<Blocks> blocks, std::uint64_t number,
            std::unique_ptr<ReadableFile> file)
      : blocks_(std::move(blocks)), number_(number), file_(std::move(file)) {}
  ~BlockFile() override { blocks_->Drop(number_); }

  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  bool is_direct() const override { return file_->is_direct(); }

  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    const bool is_small = out.size() < blocks_->block_size() / 2 && !is_direct() &&
                          RangeFits(offset, out.size(), size_bytes());
    if (!is_small) return file_->ReadAt(offset, out);
    while (!out.empty()) {
      const auto block = blocks_->Find(number_, offset / blocks_->block_size());
      const std::lock_guard lock(block->mutex);
      SEALPOINT_RETURN_IF_ERROR(Fill(offset / blocks_->block_size(), *block));
      const std::size_t size = CopyFrom(*block, offset, out);
      offset += size;
      out = out.subspan(size);
    }
    return {};
  }

 private:
  Status Fill(std::uint64_t index, Block& block) const {
    if (block.is_filled) return {};
    const std::uint64_t begin = index * blocks_->block_size();
    block.bytes.resize(std::min(blocks_->block_size(), size_bytes() - begin));
    SEALPOINT_RETURN_IF_ERROR(file_->ReadAt(begin, block.bytes));
    block.is_filled = true;
    return {};
  }

  std::size_t CopyFrom(const Block& block, std::uint64_t offset, MutableByteSpan out) const {
    const std::uint64_t begin = offset % blocks_->block_size();
    const std::size_t size = std::min<std::uint64_t>(out.size(), block.bytes.size() - begin);
    if (size > 0) std::memcpy(out.data(), block.bytes.data() + begin, size);
    return size;
  }

  const std::shared_ptr<Blocks> blocks_;
  const std::uint64_t number_;
  const std::unique_ptr<ReadableFile> file_;
};

std::unique_ptr<ReadableFile> Blocks::Wrap(std::unique_ptr<ReadableFile> file) {
  if (file->descriptor()) return file;
  const std::lock_guard lock(mutex_);
  return std::make_unique<BlockFile>(shared_from_this(), file_count_++, std::move(file));
}

}  // namespace
}  // namespace internal::storage

std::shared_ptr<BlockCache> BlockCache::Create(std::uint64_t block_size_bytes,
                                               std::size_t block_count_max) {
  return std::make_shared<internal::storage::Blocks>(block_size_bytes, block_count_max);
}

}  // namespace sealpoint
