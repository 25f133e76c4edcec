// SPDX-License-Identifier: Apache-2.0
#include "layouts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace char_lm {
namespace {

std::size_t ElementsOf(const sealpoint::Shape& shape) {
  return sealpoint::ElementCount(shape).value();
}

// Position in a tensor of this shape of element number `element` of the box.
std::size_t PositionOf(std::uint64_t element, const sealpoint::Box& box,
                       const sealpoint::Shape& shape) {
  std::size_t position = 0;
  std::size_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    position += (box.offset[d] + element % box.extent[d]) * stride;
    element /= box.extent[d];
    stride *= shape[d];
  }
  return position;
}

}  // namespace

Layouts::Layouts(const std::vector<ParameterTensor>& tensors, const sealpoint::Mesh& mesh,
                 const PlacementOf& placement_of)
    : tensors_(tensors) {
  for (const ParameterTensor& tensor : tensors) {
    placements_.push_back(placement_of(tensor));
  }
  // Each rank knows where everything lies without asking the others.
  for (int rank = 0; rank < mesh.size(); ++rank) {
    std::size_t end = 0;
    auto& layouts = layouts_.emplace_back();
    auto& begins = packed_begins_.emplace_back();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      layouts.push_back(
          sealpoint::PlaceTensor(mesh, rank, tensors[i].shape, placements_[i]).value());
      begins.push_back(end);
      end += ElementsOf(layouts.back().shape);
    }
    packed_sizes_.push_back(end);
  }
}

// Rows of the regions are contiguous in the tensor, and the regions are dense in local memory.
template <typename Copy>
void Layouts::ForEachRow(std::size_t rank, const Copy& copy) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    for (const sealpoint::LocalPart& part : layouts_[rank][i].parts) {
      const auto& [box, run] = part.region;
      const std::size_t local = packed_begins_[rank][i] + part.local_offset;
      for (std::uint64_t at = run.begin; at < run.end;) {
        const std::uint64_t row = box.extent.back();
        const std::uint64_t count = std::min(row - at % row, run.end - at);
        copy(tensors_[i].begin + PositionOf(at, box, tensors_[i].shape), local + at - run.begin,
             count);
        at += count;
      }
    }
  }
}

void Layouts::Pack(std::size_t rank, std::span<const float> flat, std::span<float> packed) const {
  ForEachRow(rank, [&](std::size_t from, std::size_t to, std::size_t count) {
    std::copy_n(flat.data() + from, count, packed.data() + to);
  });
}

void Layouts::Unpack(std::size_t rank, std::span<const float> packed, std::span<float> flat) const {
  ForEachRow(rank, [&](std::size_t to, std::size_t from, std::size_t count) {
    std::copy_n(packed.data() + from, count, flat.data() + to);
  });
}

}  // namespace char_lm
