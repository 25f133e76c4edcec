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

// One region held by this rank.
struct HeldTensor {
  TensorSpec tensor{};
  // Absent: the whole tensor. A region without elements needs no memory; another rank must then
  // hold the tensor, unless the tensor itself has no elements.
  std::optional<Region> region{};
  // All ranks that hold exactly this region, including this one, in ascending order. Every one of
  // them declares the same list. The bytes are divided among them; each byte is written once.
  // Empty: this rank only, or the ranks that the saver detects (SaverOptions::find_replicas).
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
class InternalAccess;  // internal to the library

// The tensors of a declaration, by slot. A declaration stores them in a compact form (60 to 100
// bytes and a name, compared to 240 bytes and allocations for a HeldTensor). Each HeldTensor is
// created when it is accessed, so this is a range of values. Valid until the declaration is
// changed, moved or destroyed. Thread safety: as a const object.
class SEALPOINT_EXPORT HeldTensors {
 public:
  using value_type = HeldTensor;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // because it returns values
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
  // Precondition: slot < size().
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

// Tensors and objects that this rank holds, without their memory. Create it once per run: its
// digest is the key of the plan cache, so a changed declaration never uses an outdated plan. A
// value type.
//
// The first error of a call is kept (failure()), and a save of this declaration fails with it on
// all ranks. A rank on which Add failed must therefore call Save like the others; if it returned
// early, the others would wait for it. Replace a failed declaration with a new one.
class SEALPOINT_EXPORT Declaration {
 public:
  Declaration();
  ~Declaration();
  Declaration(const Declaration& other);
  Declaration& operator=(const Declaration& other);
  // A moved-from declaration is empty.
  Declaration(Declaration&& other) noexcept;
  Declaration& operator=(Declaration&& other) noexcept;

  // Adds a region and returns its slot, the number to bind memory to. A tensor may be added several
  // times with different regions. Declare an empty tensor with or without a region. Errors:
  // InvalidArgument (name, dtype, shape, region, chunk size, codec level, replicas; overlap with
  // one of the last 128 regions of the same tensor; Saver checks all regions).
  Result<std::size_t> Add(const HeldTensor& held);
  // Adds the parts that a split rule assigns to this rank (PlaceTensor). Returns one slot per part,
  // in the order of the parts and with the layout's replicas; one slot without a region for an
  // empty tensor; none if this rank has no elements. Errors: as above; nothing is added then.
  Result<std::vector<std::size_t>> Add(const TensorSpec& tensor, const LocalLayout& layout);
  // Adds a named byte string. Only one rank declares each object name, unless the saver detects
  // replicas (SaverOptions::find_replicas). Errors: InvalidArgument (name, media type, codec,
  // already declared).
  Status AddObject(HeldObject object);

  HeldTensors tensors() const& { return HeldTensors(this); }
  const std::vector<HeldObject>& objects() const& { return objects_; }
  std::vector<HeldTensor> tensors() const&&;
  std::vector<HeldObject> objects() && { return std::move(objects_); }
  // Slots of a tensor, ascending; empty if it is not declared. Valid until the next Add. O(log n).
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const&;
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const&& = delete;
  // Position in objects(). O(log n).
  std::optional<std::size_t> FindObject(std::string_view name) const;
  // XXH3-128 of a canonical encoding of all tensors and objects. O(size of the declaration).
  Digest ComputeDigest() const;

  // The first error of Add, AddObject and NoteFailure, or success. It is copied with the
  // declaration, but not compared and not part of the digest.
  const Status& failure() const { return failure_; }
  // Records an error of the caller while creating this declaration, as if a call here had failed.
  void NoteFailure(Status failure);

  friend bool operator==(const Declaration& a, const Declaration& b) {
    return a.tensors() == b.tensors() && a.objects_ == b.objects_;
  }

 private:
  friend class HeldTensors;
  friend class InternalAccess;
  struct Summary;  // tensors, planning data, positions by name
  Status CheckNext(const HeldTensor& held, std::span<const HeldTensor> pending) const;
  Result<std::vector<std::size_t>> AddParts(const TensorSpec& tensor, const LocalLayout& layout);
  const Summary& summary() const;
  Summary& mutable_summary();

  std::vector<HeldObject> objects_;
  std::unique_ptr<Summary> summary_;  // null if nothing was added
  Status failure_;
};

// Memory bound to a declaration for one save. Borrows the memory and the declaration, which must
// not change until the save returns. Binding is local; Save reports missing bindings and errors of
// the calls here (failure()) on all ranks. A rank on which Bind failed must therefore call Save
// like the others. A later successful Bind of the same slot clears its error.
class SEALPOINT_EXPORT Sources {
 public:
  explicit Sources(const Declaration& declaration);
  explicit Sources(const Declaration&&) = delete;  // it is borrowed

  // Binds by slot, or by name if the tensor has exactly one slot. Errors: InvalidArgument (unknown
  // slot or name, more than one slot, null data, memory of the wrong size or dtype, strides of the
  // wrong count or beyond the memory, already bound).
  Status Bind(std::size_t slot, MemoryView view);
  Status Bind(std::string_view tensor, MemoryView view);
  // Binds all slots of a layout, as returned by Add, to parts of one dense local tensor of the
  // layout's shape in host or device memory. Errors: as above; strides.
  Status Bind(std::span<const std::size_t> slots, const LocalLayout& layout,
              const MemoryView& local);
  // By name, if only this layout was added for the tensor.
  Status Bind(std::string_view tensor, const LocalLayout& layout, const MemoryView& local);
  Status BindObject(std::string_view object, ByteSpan bytes);
  // A temporary container would be destroyed before the save.
  template <typename Range>
    requires(std::ranges::range<Range> && !std::ranges::borrowed_range<Range>)
  Status BindObject(std::string_view object, Range&& bytes) = delete;

  // The error of the declaration, or else the first error of the calls above and of NoteFailure.
  const Status& failure() const;
  // See Declaration::NoteFailure. With a slot, as if Bind had failed for that slot.
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
  Status failure_;                                  // not related to a slot
  std::map<std::size_t, Status> slot_failures_;     // first error of each slot
};

}  // namespace sealpoint

#endif  // SEALPOINT_DECLARATION_H_
