// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_TENSOR_TABLE_H_
#define SEALPOINT_LIB_METADATA_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/metadata/texts_less.h"
#include "sealpoint/dtype.h"

namespace sealpoint::internal::metadata {

// Attributes of a tensor in a manifest, without its shards. Borrows.
struct TensorAttributes {
  std::string_view name;
  DType dtype = DType::kNone;
  std::uint32_t element_size = 0;
  std::uint64_t chunk_size = 1;
  std::span<const std::uint64_t> shape;
  std::span<const std::string> placement;
  std::string_view attributes{};  // encoded
};

// The tensors of a writer, numbered in order of arrival. There may be hundreds of thousands: all
// names and all shapes are stored in one array each, and equal placements and attributes once.
class TensorTable {
 public:
  TensorTable() = default;
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;

  // At most 2^32 - 1 tensors. Preconditions: none of this name is there; the chunk size is a power
  // of two, the dimensions are at most 255.
  std::uint32_t Add(const TensorAttributes& attributes);
  std::optional<std::uint32_t> Find(std::string_view name) const;
  std::size_t size() const { return entries_.size(); }
  // Valid until the next Add.
  TensorAttributes operator[](std::uint32_t number) const;
  std::string_view name(std::uint32_t number) const;

 private:
  struct Entry {
    std::uint64_t name_begin = 0;
    std::uint64_t shape_begin = 0;
    std::uint32_t name_size = 0;
    std::uint32_t element_size = 0;
    std::uint32_t placement = 0;
    const std::string* attributes = nullptr;  // null: none
    DType dtype = DType::kNone;
    std::uint8_t ndim = 0;
    std::uint8_t chunk_size_log2 = 0;
  };
  std::uint32_t NumberOf(std::span<const std::string> placement);

  // Position of this name's number in places_, or the position where it would be inserted.
  std::size_t PlaceOf(std::string_view name, std::uint32_t hash) const;
  void Grow();

  // A number and a hash of its name; most searches are decided by the hash alone. Open addressing,
  // because a node per name would dominate the memory.
  struct Place {
    static constexpr std::uint32_t kFree = ~std::uint32_t{0};
    std::uint32_t hash = 0;
    std::uint32_t number = kFree;
  };

  std::vector<Entry> entries_;
  std::vector<char> names_;
  std::vector<std::uint64_t> extents_;
  std::map<std::vector<std::string>, std::uint32_t, TextsLess> placement_numbers_;
  std::vector<const std::vector<std::string>*> placements_;  // keys of the map, by number
  std::set<std::string, std::less<>> attributes_;
  std::vector<Place> places_;  // as many as a power of two, at most half of them taken
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_TENSOR_TABLE_H_
