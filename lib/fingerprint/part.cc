// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/part.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/fingerprint/coefficients.h"

namespace sealpoint::internal::fingerprint {
namespace {

constexpr std::size_t kWordSize = 4;
// Two digits of an index.
constexpr std::size_t kTileWords = Dimension::kBase * Dimension::kBase;
// Rows of fewer words are summed in blocks, of which the table has at most so many words. It costs
// as much as the sums of so many bytes.
constexpr std::uint64_t kNarrowRowWords = 64;
constexpr std::uint64_t kBlockWordsMax = 2 * kTileWords;
constexpr std::uint64_t kBlockedSizeMin = 128 * kKiB;

// The words 0 to 1023 of a row.
const WordTable& FirstTile() {
  static const WordTable& tile = *[] {  // never destroyed, see Dimension::FromLast
    std::vector<Pair> coefficients;
    for (std::uint64_t i = 0; i < kTileWords; ++i) {
      coefficients.push_back(Dimension::FromLast(0)[i]);
    }
    return new WordTable(std::move(coefficients));
  }();
  return tile;
}

// A word of which only some bytes are there.
Pair PartOfWord(std::uint64_t begin, ByteSpan bytes) {
  std::array<std::byte, kWordSize> word{};
  std::memcpy(&word[begin % kWordSize], bytes.data(), bytes.size());
  const Pair value = FirstTile().Sum(word.data(), 1, 0);  // coefficient 0 is 1
  return Multiply(value, Dimension::FromLast(0)[begin / kWordSize]);
}

}  // namespace

Pair SumOfRow(std::uint64_t begin, ByteSpan bytes) {
  Pair sum{};
  const std::size_t head = std::min<std::size_t>(-begin % kWordSize, bytes.size());
  if (head > 0) {
    sum = PartOfWord(begin, bytes.first(head));
    bytes = bytes.subspan(head);
    begin += head;
  }
  std::uint64_t word = begin / kWordSize;
  while (bytes.size() >= kWordSize) {
    const std::size_t first = word % kTileWords;
    const std::size_t count = std::min(kTileWords - first, bytes.size() / kWordSize);
    const Pair tile = FirstTile().Sum(bytes.data(), count, first);
    const bool is_first = word < kTileWords;
    sum = Add(sum, is_first ? tile : Multiply(tile, Dimension::FromLast(0)[word - first]));
    bytes = bytes.subspan(count * kWordSize);
    word += count;
  }
  return bytes.empty() ? sum : Add(sum, PartOfWord(word * kWordSize, bytes));
}

// Steps through the rows of a box, and keeps their coefficients: of all dimensions but the last.
class Part::Rows {
 public:
  Rows(const Box& box, std::uint64_t row) : box_(box) {
    dimensions_.resize(box.extent.size() - 1);
    for (std::size_t d = dimensions_.size(); d-- > 0; row /= box.extent[d]) {
      dimensions_[d] = {.table = &Dimension::FromLast(dimensions_.size() - d),
                        .index = box.offset[d] + row % box.extent[d]};
    }
    Update(0, true);
  }

  // The coefficient of the row, and that of the dimensions up to d.
  Pair coefficient() const {
    return dimensions_.empty() ? Pair{1, 1} : dimensions_.back().coefficient;
  }
  Pair coefficient_to(std::size_t d) const { return dimensions_[d].coefficient; }
  std::uint64_t index(std::size_t d) const { return dimensions_[d].index; }
  bool is_first_after(std::size_t d) const {
    while (++d < dimensions_.size()) {
      if (dimensions_[d].index != box_.offset[d]) return false;
    }
    return true;
  }

  // Adds to an index; the greater dimensions begin again.
  void Advance(std::size_t d, std::uint64_t count) {
    dimensions_[d].index += count;
    while (dimensions_[d].index >= box_.offset[d] + box_.extent[d]) {
      dimensions_[d].index = box_.offset[d];
      if (d == 0) return;  // behind the last row
      ++dimensions_[--d].index;
    }
    Update(d, false);
  }
  void Next() {
    if (!dimensions_.empty()) Advance(dimensions_.size() - 1, 1);
  }

 private:
  struct State {
    const Dimension* table = nullptr;
    std::uint64_t index = 0;
    Pair high = {1, 1};  // of the dimensions before, and of all digits but the last one
    Pair coefficient = {1, 1};
  };

  // From dimension d on, after a step in d or, if all is changed, a jump. A step within the last
  // digit costs one product.
  void Update(std::size_t d, bool is_changed) {
    for (; d < dimensions_.size(); ++d, is_changed = true) {
      State& state = dimensions_[d];
      const Pair before = d == 0 ? Pair{1, 1} : dimensions_[d - 1].coefficient;
      if (is_changed || state.index % Dimension::kBase == 0) {
        state.high = Multiply(before, state.table->OfHighDigits(state.index));
      }
      state.coefficient = Multiply(state.high, state.table->OfLastDigit(state.index));
    }
  }

  const Box& box_;
  std::vector<State> dimensions_;
};

Part::Part(const Shape& shape, std::uint32_t element_size, const Region& region) : region_(region) {
  if (shape.empty()) region_.box = {{0}, {1}};
  region_.box.offset.back() *= element_size;
  region_.box.extent.back() *= element_size;
  region_.run.begin *= element_size;
  region_.run.end *= element_size;
  block_ = MakeBlock();
}

std::optional<Part::Block> Part::MakeBlock() const {
  const Box& box = region_.box;
  const std::uint64_t row_size = box.extent.back();
  std::uint64_t words = row_size / kWordSize;
  const bool has_whole_words = row_size % kWordSize == 0 && box.offset.back() % kWordSize == 0;
  if (!has_whole_words || words >= kNarrowRowWords || box.extent.size() < 2 ||
      region_.run.size() < kBlockedSizeMin) {
    return std::nullopt;
  }
  std::size_t d = box.extent.size() - 1;
  while (d > 1 && words * box.extent[d - 1] <= kBlockWordsMax) words *= box.extent[--d];
  std::uint64_t count = 1;
  while (words * count * Dimension::kBase <= kBlockWordsMax) count *= Dimension::kBase;
  if (words * count < kNarrowRowWords) return std::nullopt;
  // The first words of the box, as if its index in dimension d - 1 were 0.
  Box block = box;
  for (std::size_t outer = 0; outer < d; ++outer) {
    block.offset[outer] = 0;
    block.extent[outer] = outer == d - 1 ? count : 1;
  }
  std::vector<Pair> coefficients;
  for (Rows rows(block, 0); coefficients.size() < words * count; rows.Next()) {
    for (std::uint64_t word = 0; word < row_size / kWordSize; ++word) {
      coefficients.push_back(Multiply(
          rows.coefficient(), Dimension::FromLast(0)[box.offset.back() / kWordSize + word]));
    }
  }
  return Block{.dimension = d - 1, .count = count, .table = WordTable(std::move(coefficients))};
}

bool Part::BeginsBlock(const Rows& rows, std::uint64_t left) const {
  if (!block_ || left < block_->table.size() * kWordSize) return false;
  const std::size_t d = block_->dimension;
  const std::uint64_t index = rows.index(d);
  return index % block_->count == 0 &&
         index + block_->count <= region_.box.offset[d] + region_.box.extent[d] &&
         rows.is_first_after(d);
}

Fingerprint Part::Of(std::uint64_t begin, ByteSpan bytes) const {
  const std::uint64_t row_size = region_.box.extent.back();
  const std::uint64_t at = region_.run.begin + begin;
  std::uint64_t in_row = at % row_size;
  Rows rows(region_.box, at / row_size);
  Pair sum{};
  while (!bytes.empty()) {
    if (in_row == 0 && BeginsBlock(rows, bytes.size())) {
      const Pair of_block = block_->table.Sum(bytes.data(), block_->table.size(), 0);
      sum = Add(sum, Multiply(of_block, rows.coefficient_to(block_->dimension)));
      bytes = bytes.subspan(block_->table.size() * kWordSize);
      rows.Advance(block_->dimension, block_->count);
      continue;
    }
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), row_size - in_row);
    const Pair of_row = SumOfRow(region_.box.offset.back() + in_row, bytes.first(size));
    sum = Add(sum, Multiply(of_row, rows.coefficient()));
    bytes = bytes.subspan(size);
    in_row = 0;
    rows.Next();
  }
  return Fingerprint(sum);
}

}  // namespace sealpoint::internal::fingerprint
