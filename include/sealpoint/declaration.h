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
struct DeclaredTensor {
  TensorSpec tensor{};
  // Absent: the whole tensor. A region without elements needs no memory. If the tensor itself has
  // elements, other ranks must then hold these elements.
  std::optional<Region> region{};
  // All ranks that hold exactly this region, including this rank, in ascending order. Every listed
  // rank declares the same list. The saver divides the bytes among the listed ranks, so that each
  // byte is written once. Empty: only this rank holds the region, or the saver detects which ranks
  // hold it (SaverOptions::find_replicas).
  std::vector<int> replicas{};
  friend bool operator==(const DeclaredTensor&, const DeclaredTensor&) = default;
};

class Declaration;
class InternalAccess;  // internal to the library

// The tensors of a declaration as a range, indexed by slot. A declaration stores tensors in a
// compact form. Each DeclaredTensor is created when it is accessed, so the range returns values,
// not references. The range is valid until the declaration is changed, moved or destroyed. Thread
// safety: concurrent reads are safe.
class SEALPOINT_EXPORT DeclaredTensors {
 public:
  using value_type = DeclaredTensor;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // because operator* returns a value
    using iterator_concept = std::forward_iterator_tag;
    using value_type = DeclaredTensor;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = DeclaredTensor;

    Iterator() = default;
    DeclaredTensor operator*() const { return DeclaredTensors(declaration_)[slot_]; }
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
    friend class DeclaredTensors;
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
  DeclaredTensor operator[](std::size_t slot) const;
  Iterator begin() const { return {declaration_, 0}; }
  Iterator end() const { return {declaration_, size()}; }

  friend bool operator==(const DeclaredTensors& a, const DeclaredTensors& b) {
    return a.IsEqual(b);
  }

 private:
  friend class Declaration;
  explicit DeclaredTensors(const Declaration* declaration) : declaration_(declaration) {}
  bool IsEqual(const DeclaredTensors& other) const;

  const Declaration* declaration_;
};

// Lists the tensors and objects of this rank, without their memory. Create a declaration once per
// run, so that later saves reuse the cached plan. The cache identifies a plan by the digest of its
// declaration, so a save with a changed declaration never uses an outdated plan. A value type.
//
// If a call fails, the declaration records the first error (failure()), and every save of the
// declaration fails with this error on all ranks. A rank on which Add failed must still call Save,
// because the other ranks wait for this rank. Replace a failed declaration with a new one.
class SEALPOINT_EXPORT Declaration {
 public:
  Declaration();
  ~Declaration();
  Declaration(const Declaration& other);
  Declaration& operator=(const Declaration& other);
  // A moved-from declaration is empty.
  Declaration(Declaration&& other) noexcept;
  Declaration& operator=(Declaration&& other) noexcept;

  // Adds a region and returns its slot, the number that Sources::Bind takes. A tensor may be added
  // several times, with different regions. An empty tensor may be added with or without a region.
  // Errors: InvalidArgument (name, dtype, shape, region, chunk size, codec level, replicas; overlap
  // with one of the last 128 regions added for the same tensor). The save detects overlaps with
  // older regions.
  Result<std::size_t> Add(const DeclaredTensor& held);
  // Adds the parts of the tensor that `layout` assigns to this rank (PlaceTensor), with the
  // replicas of the layout. Returns one slot per part, in the order of the parts. For an empty
  // tensor, returns one slot without a region. If this rank has no elements of the tensor, returns
  // no slot. Errors: the errors of the function above. If an error occurs, no part is added.
  Result<std::vector<std::size_t>> Add(const TensorSpec& tensor, const LocalLayout& layout);
  // Adds a named byte string. Only one rank may declare an object with a given name, unless the
  // saver detects replicas (SaverOptions::find_replicas). Errors: InvalidArgument (name, media
  // type, codec, or an object with this name that was already declared).
  Status AddObject(ObjectSpec object);

  DeclaredTensors tensors() const& { return DeclaredTensors(this); }
  const std::vector<ObjectSpec>& objects() const& { return objects_; }
  std::vector<DeclaredTensor> tensors() const&&;
  std::vector<ObjectSpec> objects() && { return std::move(objects_); }
  // Returns the slots of a tensor in ascending order, or an empty span if the tensor is not
  // declared. The span is valid until the next Add. O(log n).
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const&;
  std::span<const std::size_t> SlotsOf(std::string_view tensor) const&& = delete;
  // Returns the position of an object in objects(). O(log n).
  std::optional<std::size_t> FindObject(std::string_view name) const;
  // Returns the XXH3-128 digest of a canonical encoding of all tensors and objects. O(size of the
  // declaration) in the first call after a change.
  Digest ComputeDigest() const;

  // The first error of Add, AddObject and NoteFailure, or success. Copies of the declaration have
  // the same error; operator== and the digest ignore the error.
  const Status& failure() const { return failure_; }
  // Records an error that occurred in the caller's code while it created this declaration. The
  // declaration then behaves as after a failed call.
  void NoteFailure(Status failure);

  friend bool operator==(const Declaration& a, const Declaration& b) {
    return a.tensors() == b.tensors() && a.objects_ == b.objects_;
  }

 private:
  friend class DeclaredTensors;
  friend class InternalAccess;
  struct Summary;  // tensors, planning data, positions by name
  Status CheckNext(const DeclaredTensor& held, std::span<const DeclaredTensor> pending) const;
  Result<std::vector<std::size_t>> AddParts(const TensorSpec& tensor, const LocalLayout& layout);
  const Summary& summary() const;
  Summary& mutable_summary();

  std::vector<ObjectSpec> objects_;
  std::unique_ptr<Summary> summary_;  // null if nothing has been added
  Status failure_;
};

// Memory bound to a declaration for one save. Sources borrow the memory and the declaration;
// neither may change until the save returns. Binding is local. If a binding is missing or a call
// failed (failure()), Save returns this error on all ranks. A rank on which Bind failed must
// therefore still call Save, as all other ranks do. If a later Bind for the same slot succeeds, the
// slot's error is cleared.
class SEALPOINT_EXPORT Sources {
 public:
  explicit Sources(const Declaration& declaration);
  explicit Sources(const Declaration&&) = delete;  // because the declaration is borrowed

  // Binds memory to a slot, or to the tensor with this name if the tensor has exactly one slot.
  // Errors: InvalidArgument (unknown slot or name, a tensor with more than one slot, null data,
  // memory of the wrong size or dtype, a wrong number of strides, strides that reach beyond the
  // memory, a slot that is already bound).
  Status Bind(std::size_t slot, MemoryView view);
  Status Bind(std::string_view tensor, MemoryView view);
  // Binds the slots that Add returned for a layout to the parts of one dense local tensor. The
  // local tensor has the shape of the layout and is in host or device memory. Errors: the errors of
  // the functions above; InvalidArgument if `local` has strides.
  Status Bind(std::span<const std::size_t> slots, const LocalLayout& layout,
              const MemoryView& local);
  // Binds all slots of the tensor with this name. The declaration must contain only this layout of
  // the tensor.
  Status Bind(std::string_view tensor, const LocalLayout& layout, const MemoryView& local);
  Status BindObject(std::string_view object, ByteSpan bytes);
  // Deleted because a temporary container would be destroyed before the save.
  template <typename Range>
    requires(std::ranges::range<Range> && !std::ranges::borrowed_range<Range>)
  Status BindObject(std::string_view object, Range&& bytes) = delete;

  // Returns the error of the declaration if it has one. Otherwise returns the first error that does
  // not belong to a slot. If there is no such error either, returns the error of the lowest slot
  // with an error, or success if no slot has an error.
  const Status& failure() const;
  // Records an error, as Declaration::NoteFailure does. If a slot is passed, the error is recorded
  // as if Bind had failed for that slot.
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
  Status failure_;                                  // first error that does not belong to a slot
  std::map<std::size_t, Status> slot_failures_;     // first error of each slot
};

}  // namespace sealpoint

#endif  // SEALPOINT_DECLARATION_H_
