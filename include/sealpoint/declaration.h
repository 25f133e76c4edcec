// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DECLARATION_H_
#define SEALPOINT_DECLARATION_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  // Absent: the whole tensor. Of a region without elements this rank holds nothing, and needs no
  // memory; another rank must hold the tensor, unless that has no elements itself.
  std::optional<Region> region{};
  // All ranks that hold exactly this region, this one among them, ascending; empty: only this rank,
  // or those that the saver finds (SaverOptions::find_replicas). Each of them declares the same
  // list. The bytes are divided among them, each is written once.
  std::vector<int> replicas{};
  friend bool operator==(const HeldTensor&, const HeldTensor&) = default;
};

struct HeldObject {
  std::string name{};
  std::string media_type = "application/octet-stream";
  Codec codec = Codec::kNone;
  friend bool operator==(const HeldObject&, const HeldObject&) = default;
};

class Declaration;
class InternalAccess;  // the library's own modules

// The tensors of a declaration, by slot. A declaration keeps them in a smaller form (60 to 100
// bytes and a name, where a HeldTensor takes 240 and its allocations), so each is made when it is
// accessed: a range of values. Valid until the declaration changes, or is moved or destroyed.
// Thread safety: as a const object.
class SEALPOINT_EXPORT HeldTensors {
 public:
  using value_type = HeldTensor;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // since it gives values
    using iterator_concept = std::forward_iterator_tag;
    using value_type = HeldTensor;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = HeldTensor;

    Iterator() = default;
    HeldTensor operator*() const { return HeldTensors(declaration_)[slot_]; }
    Iterator& operator++() {
      ++slot_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++slot_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class HeldTensors;
    Iterator(const Declaration* declaration, std::size_t slot)
        : declaration_(declaration), slot_(slot) {}

    const Declaration* declaration_ = nullptr;
    std::size_t slot_ = 0;
  };
  using iterator = Iterator;
  using const_iterator = Iterator;

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  // Precondition: below size().
  HeldTensor operator[](std::size_t slot) const;
  Iterator begin() const { return {declaration_, 0}; }
  Iterator end() const { return {declaration_, size()}; }

  friend bool operator==(const HeldTensors& a, const HeldTensors& b) { return a.IsEqual(b); }

 private:
  friend class Declaration;
  explicit HeldTensors(const Declaration* declaration) : declaration_(declaration) {}
  bool IsEqual(const HeldTensors& other) const;

  const Declaration* declaration_;
};

// What this rank holds, without the memory. Made once per run; its digest is the key of the plan
// cache, so a changed declaration can never meet a stale plan. A value type.
//
// The first error of a call here is kept (failure()), and a save of this declaration fails with it
// on all ranks. So a rank whose Add failed calls Save like the others: if it returned instead, they
// would wait for it. A declaration that failed is made anew.
class SEALPOINT_EXPORT Declaration {
 public:
  Declaration();
  ~Declaration();
  Declaration(const Declaration& other);
  Declaration& operator=(const Declaration& other);
  // What was moved from is empty.
  Declaration(Declaration&& other) noexcept;
  Declaration& operator=(Declaration&& other) noexcept;

  // Adds a region; the same tensor may be added several times with different regions. Returns its
  // slot, the number to bind memory to. An empty tensor is declared like any other, with a
  // region or without.
  // Errors: InvalidArgument (name, dtype, shape, region, chunk size, codec level, replicas; a
  // region that overlaps one of the same tensor here, of which the last 128 are compared: Saver
  // compares all).
  Result<std::size_t> Add(const HeldTensor& held);
  // What a split rule gives this rank (PlaceTensor): a slot per part, in the order of the parts,
  // with the layout's replicas; one without a region for an empty tensor; none if this rank has no
  // element. Errors: as above; nothing is added then.
  Result<std::vector<std::size_t>> Add(const TensorSpec& tensor, const LocalLayout& layout);
  // Adds a named byte string. Over all ranks each object name is declared once, unless the saver
  // finds replicas (SaverOptions::find_replicas). Errors:
  // InvalidArgument (name, media type, codec, declared before).
  Status AddObject(HeldObject object);

  HeldTensors tensors() const& { return HeldTensors(this); }
  const std::vector<HeldObject>& objects() const& { return objects_; }
  std::vector<HeldTensor> tensors() const&&;
  std::vector<HeldObject> objects() && { return std::move(objects_); }
  // Slots of a tensor, ascending; empty if it was not declared. Valid until the next Add. O(log n).
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const&;
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const&& = delete;
  // Position in objects(). O(log n).
  std::optional<std::size_t> FindObject(std::string_view name) const;
  // XXH3-128 of a canonical encoding of everything above. O(size of the declaration).
  Digest ComputeDigest() const;

  // The first error of the calls above and of NoteFailure; success if there was none. Copies have
  // it, too; comparisons and the digest leave it out.
  const Status& failure() const { return failure_; }
  // Keeps an error of the caller's own, met while this was made, as if a call here had failed.
  void NoteFailure(Status failure);

  friend bool operator==(const Declaration& a, const Declaration& b) {
    return a.tensors() == b.tensors() && a.objects_ == b.objects_;
  }

 private:
  friend class HeldTensors;
  friend class InternalAccess;
  struct Summary;  // the tensors, what planning needs of them, the number of each name
  Status CheckNext(const HeldTensor& held, std::span<const HeldTensor> pending) const;
  Result<std::vector<std::size_t>> AddParts(const TensorSpec& tensor, const LocalLayout& layout);
  const Summary& summary() const;
  Summary& mutable_summary();

  std::vector<HeldObject> objects_;
  std::unique_ptr<Summary> summary_;  // null: nothing was added
  Status failure_;
};

// Memory bound to a declaration for one save. Borrows memory and the declaration, which must not
// change any more, until the save returned. Binding is local, but Save reports on all ranks what is
// missing, and errors of the calls here, which are kept (failure()). So a rank whose Bind failed
// calls Save like the others. An error of a slot is forgotten once memory is bound to the slot.
class SEALPOINT_EXPORT Sources {
 public:
  explicit Sources(const Declaration& declaration);
  explicit Sources(const Declaration&&) = delete;  // it is borrowed

  // By slot, or by name if the tensor has one slot here. Errors: InvalidArgument (unknown slot or
  // name, more than one slot, null data, memory of another size or dtype, strides of the wrong
  // count or beyond the memory, bound twice).
  Status Bind(std::size_t slot, MemoryView view);
  Status Bind(std::string_view tensor, MemoryView view);
  // All slots of one layout, as Add returned them, to parts of one dense local tensor of the
  // layout's shape, in host memory or on a device. Errors: as above; strides.
  Status Bind(std::span<const std::size_t> slots, const LocalLayout& layout,
              const MemoryView& local);
  // By name, if this layout alone was added for the tensor.
  Status Bind(std::string_view tensor, const LocalLayout& layout, const MemoryView& local);
  Status BindObject(std::string_view object, ByteSpan bytes);
  // A temporary container would be gone when it is saved.
  template <typename Range>
    requires(std::ranges::range<Range> && !std::ranges::borrowed_range<Range>)
  Status BindObject(std::string_view object, Range&& bytes) = delete;

  // The first error of the declaration; else one that is kept of the calls above or of NoteFailure.
  const Status& failure() const;
  // As Declaration::NoteFailure; with the slot, as if Bind had failed for it.
  void NoteFailure(Status failure);
  void NoteFailure(std::size_t slot, Status failure);

  const Declaration& declaration() const { return *declaration_; }
  const std::vector<std::optional<MemoryView>>& tensors() const { return tensors_; }
  const std::vector<std::optional<ByteSpan>>& objects() const { return objects_; }

 private:
  Status BindSlot(std::size_t slot, MemoryView view);
  Result<MemoryView> PartFor(std::size_t slot, const LocalPart& part,
                             const MemoryView& local) const;
  Status BindBytes(std::string_view object, ByteSpan bytes);

  const Declaration* declaration_;
  std::vector<std::optional<MemoryView>> tensors_;  // by slot
  std::vector<std::optional<ByteSpan>> objects_;    // in declaration order
  Status failure_;                                  // of no slot
  std::map<std::size_t, Status> slot_failures_;     // the first of each
};

}  // namespace sealpoint

#endif  // SEALPOINT_DECLARATION_H_
