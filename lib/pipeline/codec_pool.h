// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_CODEC_POOL_H_
#define SEALPOINT_LIB_PIPELINE_CODEC_POOL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal {

// Idle codecs. The contexts of a codec are large, so they are kept for the next save. Thread
// safety: all functions.
class CodecPool {
 public:
  std::unique_ptr<ChunkCodec> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<ChunkCodec>();
    std::unique_ptr<ChunkCodec> codec = std::move(idle_.back());
    idle_.pop_back();
    return codec;
  }
  void Return(std::unique_ptr<ChunkCodec> codec) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(codec));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ChunkCodec>> idle_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PIPELINE_CODEC_POOL_H_
