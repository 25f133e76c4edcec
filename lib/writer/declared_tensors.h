// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_DECLARED_TENSORS_H_
#define SEALPOINT_LIB_WRITER_DECLARED_TENSORS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/text_arena.h"
#include "sealpoint/declaration.h"

namespace sealpoint::internal::writer {

// The parts of a DeclaredTensor, in any memory. Borrows.
struct DeclaredView {
  std::string_view name{};
  std::span<const std::uint64_t> shape{};
  const TensorSpec& kind;  // all of the tensor but its name and its shape
  bool has_region = false;
  // The box of the region, if there is one: as many numbers as the shape has.
  std::span<const std::uint64_t> offset{};
  std::span<const std::uint64_t> extent{};
  Run run{};
  std::span<const int> replicas{};

  // No element is held: of an empty tensor, or a region without elements.
  bool is_empty() const {
    return has_region ? run.size() == 0 : std::ranges::find(shape, 0u) != shape.end();
  }
  // The whole tensor if no region was given.
  Region region() const;
  // Copies the tensor into `spec`, reusing its memory.
  void CopyTo(TensorSpec& spec) const;
  DeclaredTensor ToDeclaredTensor() const;
  // Compares the contents.
  friend bool operator==(const DeclaredView& a, const DeclaredView& b);
};

DeclaredView ViewOf(const DeclaredTensor& held);

// The tensors of a declaration, by slot. There may be hundreds of thousands, which mostly differ
// only in name, shape and region: all names are in one arena and all numbers in one array, and the
// rest is stored once per kind. Replicas are stored elsewhere.
class DeclaredTensorTable {
 public:
  DeclaredTensorTable() = default;
  DeclaredTensorTable(const DeclaredTensorTable& other);
  DeclaredTensorTable& operator=(const DeclaredTensorTable&) = delete;

  // `name` is the stored name of the tensor if another slot has it (name()), else empty.
  // Precondition: a valid name and shape.
  void Add(const DeclaredTensor& held, std::string_view name);
  std::size_t size() const { return slots_.size(); }
  // Whether a tensor has TensorSpec::stored_cuts.
  bool has_stored_cuts() const {
    return std::ranges::any_of(kinds_,
                               [](const TensorSpec* kind) { return !kind->stored_cuts.empty(); });
  }
  bool has_attributes() const {
    return std::ranges::any_of(kinds_,
                               [](const TensorSpec* kind) { return !kind->attributes.empty(); });
  }
  // Without replicas.
  DeclaredView operator[](std::size_t slot) const;
  std::string_view name(std::size_t slot) const {
    return {slots_[slot].name, slots_[slot].name_size};
  }

 private:
  struct KindLess {
    bool operator()(const TensorSpec& a, const TensorSpec& b) const;
  };
  struct Slot {
    const char* name = nullptr;
    // Its first number: the shape, and after it offset, extent and run of the region.
    std::uint64_t first_number = 0;
    std::uint32_t kind = 0;
    std::uint16_t name_size = 0;
    std::uint8_t ndim = 0;
    bool has_region = false;

    std::size_t number_count() const { return has_region ? 3 * std::size_t{ndim} + 2 : ndim; }
  };

  std::uint32_t KindOf(const TensorSpec& spec);
  std::uint64_t KeepNumbers(const DeclaredTensor& held);

  std::vector<Slot> slots_;
  TextArena names_;
  std::vector<std::uint64_t> numbers_;
  std::map<TensorSpec, std::uint32_t, KindLess> kind_numbers_;  // their names are empty
  std::vector<const TensorSpec*> kinds_;                        // keys of the map, by number
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_DECLARED_TENSORS_H_
