// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <ranges>

#include "lib/c/memory.h"
#include "lib/c/ranks.h"
#include "lib/c/read.h"
#include "sealpoint/placement.h"

struct sealpoint_layout {
  sealpoint::LocalLayout layout;
};

namespace sealpoint::c_api {
namespace {

Status TakeRules(const sealpoint_string* rules, std::uint64_t count, Placement& taken) {
  SEALPOINT_C_TRY(CheckArray(rules, count, "rules"));
  std::vector<std::string> texts(count);
  for (std::uint64_t i = 0; i < count; ++i) SEALPOINT_C_TRY(Take(rules[i], "a rule", texts[i]));
  auto placement = ParsePlacement(texts);
  if (!placement.ok()) return placement.error();
  taken = std::move(placement).value();
  return {};
}

Status FillLayout(const LocalLayout& layout, sealpoint_layout_info* out) {
  sealpoint_layout_info filled{};
  const auto count = ElementCount(layout.shape);
  if (!count.ok()) return count.error();
  filled.ndim = static_cast<std::uint32_t>(layout.shape.size());
  filled.element_count = *count;
  filled.part_count = layout.parts.size();
  filled.replica_count = layout.replicas.size();
  std::ranges::copy(layout.shape, filled.shape);
  return Fill(filled, out);
}

Status FillPart(const LocalLayout& layout, std::uint64_t index, sealpoint_region* out) {
  SEALPOINT_C_TRY(CheckIndex(index, layout.parts.size(), "parts"));
  const Region& region = layout.parts[index].region;
  sealpoint_region filled{};
  filled.ndim = static_cast<std::uint32_t>(region.box.extent.size());
  filled.offset = region.box.offset.data();
  filled.extent = region.box.extent.data();
  filled.run_begin = region.run.begin;
  filled.run_end = region.run.end;
  return Fill(filled, out);
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::CheckOut;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::Noting;
using sealpoint::c_api::NotNull;

extern "C" {

int32_t sealpoint_layout_create(const sealpoint_mesh_axis* axes, uint64_t axis_count, int32_t rank,
                                const uint64_t* shape, uint32_t ndim, const sealpoint_string* rules,
                                uint64_t rule_count, sealpoint_layout** out,
                                sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_layout>> {
    sealpoint::MeshAxes taken_axes;
    sealpoint::Shape taken_shape;
    sealpoint::Placement placement;
    SEALPOINT_C_TRY(sealpoint::c_api::TakeMesh(axes, axis_count, taken_axes));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeShape(shape, ndim, "shape", taken_shape));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeRules(rules, rule_count, placement));
    const auto mesh = sealpoint::Mesh::Create(std::move(taken_axes));
    if (!mesh.ok()) return mesh.error();
    auto layout = sealpoint::PlaceTensor(*mesh, rank, taken_shape, placement);
    if (!layout.ok()) return layout.error();
    auto handle = std::make_unique<sealpoint_layout>();
    handle->layout = std::move(layout).value();
    return handle;
  });
}

void sealpoint_layout_free(sealpoint_layout* layout) { delete layout; }

int32_t sealpoint_layout_get_info(const sealpoint_layout* layout, sealpoint_layout_info* out,
                                  sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(layout, "layout"));
    SEALPOINT_C_TRY(CheckOut(out));
    return sealpoint::c_api::FillLayout(layout->layout, out);
  });
}

int32_t sealpoint_layout_part(const sealpoint_layout* layout, uint64_t index, sealpoint_region* out,
                              sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(layout, "layout"));
    SEALPOINT_C_TRY(CheckOut(out));
    return sealpoint::c_api::FillPart(layout->layout, index, out);
  });
}

int32_t sealpoint_declaration_add_layout(sealpoint_declaration* declaration,
                                         const sealpoint_tensor_spec* tensor,
                                         const sealpoint_layout* layout, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(declaration, "declaration"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckHasNoSources(*declaration));
    return Noting(*declaration->declaration, [&]() -> Status {
      sealpoint::TensorSpec spec;
      SEALPOINT_C_TRY(sealpoint::c_api::TakeTensor(tensor, spec));
      declaration->attributes.ApplyTo(spec);
      SEALPOINT_C_TRY(NotNull(layout, "layout"));
      return declaration->declaration->Add(spec, layout->layout).status();
    });
  });
}

int32_t sealpoint_sources_bind_layout(sealpoint_sources* sources, sealpoint_string tensor,
                                      const sealpoint_layout* layout, const sealpoint_source* local,
                                      sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(sources, "sources"));
    return Noting(sources->sources, [&]() -> Status {
      std::string_view name;
      sealpoint::MemoryView view;
      SEALPOINT_C_TRY(sealpoint::c_api::Take(tensor, "tensor", name));
      SEALPOINT_C_TRY(NotNull(layout, "layout"));
      SEALPOINT_C_TRY(sealpoint::c_api::TakeSource(local, view));
      return sources->sources.Bind(name, layout->layout, view);
    });
  });
}

int32_t sealpoint_read_request_add_layout(sealpoint_read_request* request, sealpoint_string tensor,
                                          const sealpoint_layout* layout,
                                          const sealpoint_destination* local,
                                          sealpoint_error** error) {
  return Guarded(error, [&] {
    return sealpoint::c_api::AddTo(request, [&](sealpoint::ReadRequest& items) -> Status {
      std::string_view name;
      sealpoint::MutableMemoryView view;
      SEALPOINT_C_TRY(sealpoint::c_api::Take(tensor, "tensor", name));
      SEALPOINT_C_TRY(NotNull(layout, "layout"));
      SEALPOINT_C_TRY(sealpoint::c_api::TakeDestination(local, view));
      items.Add(name, layout->layout, view);
      return {};
    });
  });
}

}  // extern "C"
