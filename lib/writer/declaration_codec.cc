// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/declaration_codec.h"

#include "lib/base/macros.h"

namespace sealpoint::internal::writer {
namespace {

void EncodeNumbers(std::span<const std::uint64_t> numbers, WireWriter& out) {
  out.Put(std::uint64_t{numbers.size()});
  out.PutAll(numbers);
}

void EncodeRegion(const DeclaredView& held, WireWriter& out) {
  EncodeNumbers(held.offset, out);
  EncodeNumbers(held.extent, out);
  out.Put(held.run.begin);
  out.Put(held.run.end);
}

Result<Region> DecodeRegion(WireReader& in) {
  Region region;
  SEALPOINT_ASSIGN_OR_RETURN(region.box.offset, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(region.box.extent, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(region.run.begin, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(region.run.end, in.Number());
  return region;
}

void EncodeTensorSpec(const DeclaredView& held, WireWriter& out) {
  out.Put(held.name);
  out.Put(std::uint64_t{static_cast<std::uint16_t>(held.kind.dtype)});
  EncodeNumbers(held.shape, out);
  out.Put(std::uint64_t{held.kind.element_size});
  out.Put(held.kind.chunk_size_bytes);
  out.Put(std::uint64_t{static_cast<std::uint16_t>(held.kind.codec)});
  out.Put(static_cast<std::uint64_t>(std::int64_t{held.kind.codec_level}));
  EncodeNumbers(held.kind.stored_cuts, out);
  out.Put(held.kind.group);
  out.Put(held.kind.attributes.encoded());
  out.Put(std::uint64_t{held.kind.placement.size()});
  for (const std::string& text : held.kind.placement) out.Put(text);
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
  SEALPOINT_ASSIGN_OR_RETURN(tensor.stored_cuts, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(tensor.group, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan attributes, in.Span());
  SEALPOINT_ASSIGN_OR_RETURN(tensor.attributes, Attributes::Decode(AsText(attributes)));
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

void EncodeDeclaredTensor(const DeclaredView& held, WireWriter& out) {
  EncodeTensorSpec(held, out);
  out.Put(std::uint64_t{held.has_region ? 1u : 0u});
  if (held.has_region) EncodeRegion(held, out);
  out.PutSequence(std::vector<std::uint64_t>(held.replicas.begin(), held.replicas.end()));
}

void EncodeObjectSpec(const ObjectSpec& object, WireWriter& out) {
  out.Put(object.name);
  out.Put(object.media_type);
  out.Put(std::uint64_t{static_cast<std::uint16_t>(object.codec)});
}

Result<DeclaredTensor> DecodeDeclaredTensor(WireReader& in, int rank_count) {
  DeclaredTensor held;
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

Result<ObjectSpec> DecodeObjectSpec(WireReader& in) {
  ObjectSpec object;
  SEALPOINT_ASSIGN_OR_RETURN(object.name, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(object.media_type, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, in.Number());
  object.codec = static_cast<Codec>(codec);
  return object;
}

}  // namespace sealpoint::internal::writer
