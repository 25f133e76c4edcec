// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_DECLARATION_SUMMARY_H_
#define SEALPOINT_LIB_WRITER_DECLARATION_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/writer/declared_tensors.h"
#include "sealpoint/declaration.h"

namespace sealpoint::internal::writer {

// Planning data of a slot, computed when the slot is declared; planning uses nothing else. Hashes
// of 128 bits.
struct SlotSummary {
  using Hash = std::array<std::uint64_t, 2>;
  Run run{};
  std::uint64_t chunk_size_bytes = 0;
  std::uint32_t element_size = 0;
  std::uint32_t replica_group = 0;  // number of the list of replicas
  std::uint32_t blob_group = 0;     // number of the tensor's group
  bool is_empty = false;            // no element is held
  bool is_empty_tensor = false;     // there is none
  bool is_first_of_tensor = false;  // of its slots here
  bool has_first_element = false;   // the region
  Hash name{};
  std::uint64_t spec = 0;  // of the name and all in which the declarations of a tensor must agree
};

// Sums (lib/layout/tiling_sum.h) over all slots with the same list of replicas.
struct ReplicaGroupSummary {
  std::uint32_t number = 0;      // in the order in which the lists came
  std::size_t region_count = 0;  // slots that hold elements
  // maximum over the regions, of the boxes written for one region
  std::uint64_t corner_count_max = 0;
  SlotSummary::Hash tiling{};  // the regions' part of the sum that shows exact tiling
  SlotSummary::Hash names{};   // of the regions
};

// All slots of one group, which gets blobs of its own.
struct BlobGroupSummary {
  std::uint32_t number = 0;  // in the order in which the groups came
  std::size_t slot_count = 0;
};

// The tensors of a Declaration and derived data, without its objects. A value type.
class DeclarationSummary {
 public:
  DeclarationSummary();
  ~DeclarationSummary() = default;
  DeclarationSummary(const DeclarationSummary& other);
  DeclarationSummary& operator=(const DeclarationSummary&) = delete;

  // The next slot. Precondition: valid, as Declaration::Add finds it.
  void AddSlot(const DeclaredTensor& held);
  // The next object; false if there is one of this name.
  bool AddObject(std::string_view name);

  // The tensor added as this slot. Valid until the next AddSlot.
  DeclaredView held(std::size_t slot) const;
  // One per slot; by list of replicas; by blob group.
  const std::vector<SlotSummary>& slots() const { return slots_; }
  const std::map<std::vector<int>, ReplicaGroupSummary>& replica_groups() const {
    return replica_groups_;
  }
  const std::map<std::string, BlobGroupSummary, std::less<>>& blob_groups() const {
    return blob_groups_;
  }
  bool has_stored_cuts() const { return tensors_.has_stored_cuts(); }
  bool has_attributes() const { return tensors_.has_attributes(); }
  // The result of compute(), which is called once until the next AddSlot or AddObject. Thread-safe.
  template <typename Compute>
  Digest KeepDigest(const Compute& compute) const {
    const std::lock_guard lock(digest_mutex_);
    if (!digest_) digest_ = compute();
    return *digest_;
  }
  // Slots of the tensor that has most of them.
  std::size_t slots_of_a_tensor_max() const { return slots_of_a_tensor_max_; }
  // As Declaration has them.
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const;
  std::optional<std::size_t> FindObject(std::string_view name) const;
  // Calls visit(slots), ascending, for each tensor in the order of the names. O(n).
  template <typename Visit>
  void ForEachTensor(const Visit& visit) const;

 private:
  // Orders slots by the names of their tensors, which are in the tensors alone.
  struct ByName {
    using is_transparent = void;
    const DeclaredTensorTable* tensors;
    std::string_view NameOf(std::string_view name) const { return name; }
    std::string_view NameOf(std::size_t slot) const { return tensors->name(slot); }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return NameOf(a) < NameOf(b);
    }
  };
  using FirstSlots = std::set<std::size_t, ByName>;
  static constexpr std::size_t kNoSlot = ~std::size_t{0};

  std::span<const std::size_t> SlotsBehind(std::size_t first_slot) const;
  void Link(std::size_t slot, FirstSlots::const_iterator tensor, bool is_first);

  DeclaredTensorTable tensors_;
  std::vector<SlotSummary> slots_;
  std::map<std::vector<int>, ReplicaGroupSummary> replica_groups_;
  std::vector<const std::vector<int>*> replica_lists_;  // keys of the map, by number
  std::map<std::string, BlobGroupSummary, std::less<>> blob_groups_;
  FirstSlots first_slots_;                // of each tensor
  std::vector<std::size_t> own_numbers_;  // each slot's own: the slots of a tensor with one
  std::unordered_map<std::size_t, std::vector<std::size_t>> all_slots_;  // of one with several
  // The slot after each in the order of first_slots_: followed faster than the nodes of a set,
  // which are anywhere in memory.
  std::vector<std::size_t> next_slot_;
  std::size_t slots_of_a_tensor_max_ = 0;
  std::map<std::string, std::size_t, std::less<>> object_numbers_;
  mutable std::mutex digest_mutex_;
  mutable std::optional<Digest> digest_;  // of the whole declaration; absent after a change
};

// Corners of the boxes of a region, before dimensions that no box divides are left out
// (lib/layout/tiling.h).
std::uint64_t CornerCountOf(const Region& region);

// The region of a slot; the whole tensor if none was given. Precondition: not an empty tensor.
Region HeldRegionOf(const DeclaredTensor& held);

// The hash of a name of an object, which no tensor's name has.
SlotSummary::Hash HashObjectName(std::string_view name);

template <typename Visit>
void DeclarationSummary::ForEachTensor(const Visit& visit) const {
  if (first_slots_.empty()) return;
  std::vector<std::size_t> slots;
  for (std::size_t slot = *first_slots_.begin(); slot != kNoSlot;) {
    slots.push_back(slot);
    slot = next_slot_[slot];
    if (slot != kNoSlot && !slots_[slot].is_first_of_tensor) continue;
    visit(std::span<const std::size_t>(slots));
    slots.clear();
  }
}

}  // namespace sealpoint::internal::writer

namespace sealpoint {
struct Declaration::Summary final : internal::writer::DeclarationSummary {};
}  // namespace sealpoint

#endif  // SEALPOINT_LIB_WRITER_DECLARATION_SUMMARY_H_
