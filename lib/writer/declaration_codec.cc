// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/declaration_codec.h"

#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

void EncodeRegion(const Region& region, WireWriter& out) {
  out.Put(region.box.offset);
  out.Put(region.box.extent);
  out.Put(region.run.begin);
  out.Put(region.run.end);
}

Result<Region> DecodeRegion(WireReader& in) {
  Region region;
  SEALPOINT_ASSIGN_OR_RETURN(region.box.offset, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(region.box.extent, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(region.run.begin, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(region.run.end, in.Number());
  return region;
}

void EncodeTensorSpec(const TensorSpec& tensor, WireWriter& out) {
  out.Put(tensor.name);
  out.Put(std::uint64_t{static_cast<std::uint16_t>(tensor.dtype)});
  out.Put(tensor.shape);
  out.Put(std::uint64_t{tensor.element_size});
  out.Put(tensor.chunk_size_bytes);
  out.Put(std::uint64_t{static_cast<std::uint16_t>(tensor.codec)});
  out.Put(static_cast<std::uint64_t>(std::int64_t{tensor.codec_level}));
  out.Put(tensor.group);
  out.Put(std::uint64_t{tensor.placement.size()});
  for (const std::string& text : tensor.placement) out.Put(text);
}

Result<TensorSpec> DecodeTensorSpec(WireReader& in) {
  TensorSpec tensor;
  SEALPOINT_ASSIGN_OR_RETURN(tensor.name, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t dtype, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(tensor.shape, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t element_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(tensor.chunk_size_bytes, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec_level, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(tensor.group, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t placement_count, in.Number());
  for (std::uint64_t i = 0; i < placement_count; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(std::string text, in.Text());
    tensor.placement.push_back(std::move(text));
  }
  tensor.dtype = static_cast<DType>(dtype);
  tensor.element_size = static_cast<std::uint32_t>(element_size);
  tensor.codec = static_cast<Codec>(codec);
  tensor.codec_level = static_cast<int>(static_cast<std::int64_t>(codec_level));
  return tensor;
}

}  // namespace

void EncodeHeldTensor(const HeldTensor& held, WireWriter& out) {
  EncodeTensorSpec(held.tensor, out);
  out.Put(std::uint64_t{held.region ? 1u : 0u});
  if (held.region) EncodeRegion(*held.region, out);
  out.PutSequence(std::vector<std::uint64_t>(held.replicas.begin(), held.replicas.end()));
}

void EncodeHeldObject(const HeldObject& object, WireWriter& out) {
  out.Put(object.name);
  out.Put(object.media_type);
  out.Put(std::uint64_t{static_cast<std::uint16_t>(object.codec)});
}

Result<HeldTensor> DecodeHeldTensor(WireReader& in, int rank_count) {
  HeldTensor held;
  SEALPOINT_ASSIGN_OR_RETURN(held.tensor, DecodeTensorSpec(in));
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_region, in.Number());
  if (has_region != 0) {
    SEALPOINT_ASSIGN_OR_RETURN(held.region, DecodeRegion(in));
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> replicas,
                             in.Sequence(static_cast<std::uint64_t>(rank_count)));
  for (const std::uint64_t rank : replicas) held.replicas.push_back(static_cast<int>(rank));
  return held;
}

Result<HeldObject> DecodeHeldObject(WireReader& in) {
  HeldObject object;
  SEALPOINT_ASSIGN_OR_RETURN(object.name, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(object.media_type, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, in.Number());
  object.codec = static_cast<Codec>(codec);
  return object;
}

}  // namespace sealpoint::internal
