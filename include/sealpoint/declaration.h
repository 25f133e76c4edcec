// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DECLARATION_H_
#define SEALPOINT_DECLARATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/placement.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

// One region that this rank holds.
struct HeldTensor {
  TensorSpec tensor{};
  // Absent: the whole tensor.
  std::optional<Region> region{};
  // All ranks that hold exactly this region, this one among them, ascending; empty: only this rank.
  // Each of them declares the same list. The bytes are divided among them, each is written once.
  std::vector<int> replicas{};
  friend bool operator==(const HeldTensor&, const HeldTensor&) = default;
};

struct HeldObject {
  std::string name{};
  std::string media_type{};
  Codec codec = Codec::kNone;
  friend bool operator==(const HeldObject&, const HeldObject&) = default;
};

namespace internal {

// What planning needs of a slot, made once when it is declared; planning looks at no more of it
// than this. Hashes of 128 bits.
struct SlotFacts {
  using Hash = std::array<std::uint64_t, 2>;
  Run run{};
  std::uint64_t chunk_size_bytes = 0;
  std::uint32_t element_size = 0;
  std::uint32_t holders = 0;        // number of the list of replicas
  std::uint32_t group = 0;          // number of the tensor's group
  bool is_empty = false;            // the tensor
  bool is_first_of_tensor = false;  // of its slots here
  bool has_first_element = false;   // the region
  Hash name{};
  std::uint64_t spec = 0;  // of the name and all in which the declarations of a tensor must agree
  friend bool operator==(const SlotFacts&, const SlotFacts&) = default;
};

// Of all slots with the same list of replicas. Sums of lib/layout/tiling_sum.h.
struct HolderFacts {
  std::uint32_t number = 0;            // in the order in which the lists came
  std::size_t region_count = 0;        // slots that are no empty tensors
  std::uint64_t corner_count_max = 0;  // of the boxes of what is written of one region
  SlotFacts::Hash tiling{};            // the regions' part of the sum that shows exact tiling
  SlotFacts::Hash names{};             // of the regions
  friend bool operator==(const HolderFacts&, const HolderFacts&) = default;
};

// Of all slots of one group, for which blobs of its own are made.
struct GroupFacts {
  std::uint32_t number = 0;  // in the order in which the groups came
  std::size_t slot_count = 0;
  friend bool operator==(const GroupFacts&, const GroupFacts&) = default;
};

}  // namespace internal

// What this rank holds, without the memory. Made once per run; its digest is the key of the plan
// cache, so a changed declaration can never meet a stale plan. A value type.
class SEALPOINT_EXPORT Declaration {
 public:
  // Adds a region; the same tensor may be added several times with different regions. Returns its
  // slot, the number to bind memory to. An empty tensor is declared like any other (region absent).
  // Errors: InvalidArgument (name, dtype, shape, region, chunk size, replicas).
  Result<std::size_t> Add(HeldTensor held);
  // What a split rule gives this rank (PlaceTensor): a slot per part, in the order of the parts,
  // with the layout's replicas; one without a region for an empty tensor; none where this rank has
  // no element. Errors: as above; nothing is added then.
  Result<std::vector<std::size_t>> Add(const TensorSpec& tensor, const LocalLayout& layout);
  // Adds a named byte string. Over all ranks each object name is declared once.
  Status AddObject(HeldObject object);

  const std::vector<HeldTensor>& tensors() const { return tensors_; }
  const std::vector<HeldObject>& objects() const { return objects_; }
  // Slots of a tensor, ascending; empty where it was not declared. O(log n).
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const;
  // Calls visit(slots), ascending, for each tensor in the order of the names. O(n).
  template <typename Visit>
  void ForEachTensor(const Visit& visit) const {
    if (slots_.empty()) return;
    std::vector<std::size_t> slots;
    for (std::size_t slot = slots_.begin()->second.front(); slot != kNoSlot;) {
      slots.push_back(slot);
      slot = next_slot_[slot];
      if (slot != kNoSlot && !facts_[slot].is_first_of_tensor) continue;
      visit(std::span<const std::size_t>(slots));
      slots.clear();
    }
  }
  // One per slot; by list of replicas; by group. For the library's own modules.
  const std::vector<internal::SlotFacts>& facts() const { return facts_; }
  const std::map<std::vector<int>, internal::HolderFacts>& holders() const { return holders_; }
  const std::map<std::string, internal::GroupFacts, std::less<>>& groups() const { return groups_; }
  // Slots of the tensor that has most of them.
  std::size_t slots_of_a_tensor_max() const { return slots_of_a_tensor_max_; }
  // Position in objects(). O(log n).
  std::optional<std::size_t> FindObject(std::string_view name) const;
  // XXH3-128 of a canonical encoding of everything above. O(size of the declaration).
  Digest ComputeDigest() const;

  friend bool operator==(const Declaration&, const Declaration&) = default;

 private:
  using SlotsByName = std::map<std::string, std::vector<std::size_t>, std::less<>>;
  static constexpr std::size_t kNoSlot = ~std::size_t{0};

  void Link(std::size_t slot, SlotsByName::const_iterator tensor);

  std::vector<HeldTensor> tensors_;
  std::vector<internal::SlotFacts> facts_;
  std::map<std::vector<int>, internal::HolderFacts> holders_;
  std::map<std::string, internal::GroupFacts, std::less<>> groups_;
  std::vector<HeldObject> objects_;
  SlotsByName slots_;
  // The slot behind each in the order of slots_: followed faster than the nodes of a map, which lie
  // anywhere in memory.
  std::vector<std::size_t> next_slot_;
  std::size_t slots_of_a_tensor_max_ = 0;
  std::map<std::string, std::size_t, std::less<>> object_numbers_;
};

// Memory bound to a declaration for one save. Borrows memory and the declaration, which must not
// change any more, until the save returned. Binding is local; what is missing or null is reported
// by Save, on all ranks.
class SEALPOINT_EXPORT Sources {
 public:
  explicit Sources(const Declaration& declaration);

  // By slot, or by name where the tensor has one slot here. Errors: InvalidArgument (unknown slot
  // or name, more than one slot, null data, strides of the wrong count, bound twice).
  Status Bind(std::size_t slot, ConstMemoryView view);
  Status Bind(std::string_view tensor, ConstMemoryView view);
  // All slots of one layout, as Add returned them, to one dense local tensor of the layout's shape,
  // in host memory or on a device (BasicMemoryView).
  Status Bind(std::span<const std::size_t> slots, const LocalLayout& layout, const void* local,
              int device = kHostDevice, void* stream = nullptr);
  Status BindObject(std::string_view object, ByteSpan bytes);

  const Declaration& declaration() const { return *declaration_; }
  const std::vector<std::optional<ConstMemoryView>>& tensors() const { return tensors_; }
  const std::vector<std::optional<ByteSpan>>& objects() const { return objects_; }

 private:
  const Declaration* declaration_;
  std::vector<std::optional<ConstMemoryView>> tensors_;  // by slot
  std::vector<std::optional<ByteSpan>> objects_;         // in declaration order
};

}  // namespace sealpoint

#endif  // SEALPOINT_DECLARATION_H_
