// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_MEMORY_H_
#define SEALPOINT_LIB_C_MEMORY_H_

#include <cstdint>
#include <optional>

#include "lib/c/boundary.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"
#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"

// Structs of sealpoint.h as values of the C++ API.

namespace sealpoint::c_api {

Status TakeDType(std::uint32_t given, DType& taken);
Status TakeCodec(std::uint32_t given, Codec& taken);
Status TakeShape(const std::uint64_t* extents, std::uint32_t ndim, std::string_view what,
                 Shape& taken);
// Nothing if `given` is NULL.
Status TakeRegion(const sealpoint_region* given, std::optional<Region>& taken);
Status TakeDestination(const sealpoint_destination* given, MutableMemoryView& taken);
Status TakeSource(const sealpoint_source* given, MemoryView& taken);
Status TakeTensor(const sealpoint_tensor_spec* given, TensorSpec& taken);
Status TakeMesh(const sealpoint_mesh_axis* axes, std::uint64_t count, MeshAxes& taken);
Status TakeProvenance(const sealpoint_key_value* pairs, std::uint64_t count, ProvenanceList& taken);
// Empty if the attempt is zero.
std::optional<ParentRef> TakeParent(const sealpoint_id& attempt, std::uint64_t sequence);

sealpoint_commit_info Out(const CommitInfo& info);

// An array of DLPack: its memory, and its shape.
struct Array {
  MutableMemoryView view{};
  Shape shape{};
};
Status TakeArray(const sealpoint_dl_tensor* given, void* stream, Array& taken);
// Checks that the array has the elements of the region, or of the whole tensor of `shape`.
Status CheckArrayShape(const Array& array, const std::optional<Region>& region, const Shape& shape);
// The dtype for DLPack. Errors: Unsupported.
Result<DlpackDType> DlDtypeOf(DType dtype);

}  // namespace sealpoint::c_api

#endif  // SEALPOINT_LIB_C_MEMORY_H_
