// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_TEXT_ARENA_H_
#define SEALPOINT_LIB_BASE_TEXT_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace sealpoint::internal {

// Stores many texts in a few large blocks; a std::string each would take 32 more bytes and an
// allocation. Texts do not move until the last copy of their arena is destroyed; copies share the
// texts.
class TextArena {
 public:
  TextArena() = default;
  TextArena(const TextArena& other) : blocks_(other.blocks_) {}  // the room stays the other's
  TextArena& operator=(const TextArena&) = delete;

  std::string_view Keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > room_) {
      room_ = std::max(kBlockSize, text.size());
      blocks_.push_back(std::make_shared_for_overwrite<char[]>(room_));
      next_ = blocks_.back().get();
    }
    const char* const kept = next_;
    next_ = std::copy(text.begin(), text.end(), next_);
    room_ -= text.size();
    return {kept, text.size()};
  }

 private:
  static constexpr std::size_t kBlockSize = std::size_t{1} << 15;

  std::vector<std::shared_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t room_ = 0;  // from next_ on
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_TEXT_ARENA_H_
