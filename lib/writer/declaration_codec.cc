// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/declaration_codec.h"

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

constexpr std::byte kTensorTag{1};
constexpr std::byte kObjectTag{2};

void Put(Bytes& out, std::uint64_t number) {
  out.resize(out.size() + sizeof(number));
  StoreLe(out, out.size() - sizeof(number), number);
}

void Put(Bytes& out, std::string_view text) {
  Put(out, std::uint64_t{text.size()});
  const ByteSpan bytes = AsBytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void Put(Bytes& out, const std::vector<std::uint64_t>& numbers) {
  Put(out, std::uint64_t{numbers.size()});
  for (const std::uint64_t number : numbers) Put(out, number);
}

Status Malformed() { return MakeError(Code::kComm, "a rank sent a malformed declaration"); }

}  // namespace

void EncodeHeldTensor(const HeldTensor& held, Bytes& out) {
  out.push_back(kTensorTag);
  const TensorSpec& tensor = held.tensor;
  Put(out, tensor.name);
  Put(out, static_cast<std::uint64_t>(tensor.dtype));
  Put(out, tensor.shape);
  Put(out, std::uint64_t{tensor.element_size});
  Put(out, tensor.chunk_size_bytes);
  Put(out, static_cast<std::uint64_t>(tensor.codec));
  Put(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(tensor.codec_level)));
  Put(out, tensor.group);
  Put(out, std::uint64_t{tensor.placement.size()});
  for (const std::string& text : tensor.placement) Put(out, text);
  Put(out, std::uint64_t{held.region ? 1u : 0u});
  if (held.region) {
    Put(out, held.region->box.offset);
    Put(out, held.region->box.extent);
    Put(out, held.region->run.begin);
    Put(out, held.region->run.end);
  }
  Put(out, std::vector<std::uint64_t>(held.replicas.begin(), held.replicas.end()));
}

void EncodeHeldObject(const HeldObject& object, Bytes& out) {
  out.push_back(kObjectTag);
  Put(out, object.name);
  Put(out, object.media_type);
  Put(out, static_cast<std::uint64_t>(object.codec));
}

bool DeclarationDecoder::next_is_tensor() const { return bytes_[at_] == kTensorTag; }

Result<std::uint64_t> DeclarationDecoder::NextNumber() {
  if (!RangeFits(at_, sizeof(std::uint64_t), bytes_.size())) return Malformed();
  const auto number = LoadLe<std::uint64_t>(bytes_, at_);
  at_ += sizeof(number);
  return number;
}

Result<std::vector<std::uint64_t>> DeclarationDecoder::NextNumbers() {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, NextNumber());
  if (count > (bytes_.size() - at_) / sizeof(std::uint64_t)) return Malformed();
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) {
    SEALPOINT_ASSIGN_OR_RETURN(number, NextNumber());
  }
  return numbers;
}

Result<std::string> DeclarationDecoder::NextText() {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size, NextNumber());
  if (!RangeFits(at_, size, bytes_.size())) return Malformed();
  const std::string text(AsText(bytes_.subspan(at_, size)));
  at_ += size;
  return text;
}

Result<HeldTensor> DeclarationDecoder::NextTensor() {
  ++at_;
  HeldTensor held;
  SEALPOINT_ASSIGN_OR_RETURN(held.tensor.name, NextText());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t dtype, NextNumber());
  SEALPOINT_ASSIGN_OR_RETURN(held.tensor.shape, NextNumbers());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t element_size, NextNumber());
  SEALPOINT_ASSIGN_OR_RETURN(held.tensor.chunk_size_bytes, NextNumber());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, NextNumber());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec_level, NextNumber());
  SEALPOINT_ASSIGN_OR_RETURN(held.tensor.group, NextText());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t placement_count, NextNumber());
  for (std::uint64_t i = 0; i < placement_count; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(std::string text, NextText());
    held.tensor.placement.push_back(std::move(text));
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_region, NextNumber());
  if (has_region != 0) {
    Region region;
    SEALPOINT_ASSIGN_OR_RETURN(region.box.offset, NextNumbers());
    SEALPOINT_ASSIGN_OR_RETURN(region.box.extent, NextNumbers());
    SEALPOINT_ASSIGN_OR_RETURN(region.run.begin, NextNumber());
    SEALPOINT_ASSIGN_OR_RETURN(region.run.end, NextNumber());
    held.region = std::move(region);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> replicas, NextNumbers());
  for (const std::uint64_t rank : replicas) held.replicas.push_back(static_cast<int>(rank));
  held.tensor.dtype = static_cast<DType>(dtype);
  held.tensor.element_size = static_cast<std::uint32_t>(element_size);
  held.tensor.codec = static_cast<Codec>(codec);
  held.tensor.codec_level = static_cast<int>(static_cast<std::int64_t>(codec_level));
  return held;
}

Result<HeldObject> DeclarationDecoder::NextObject() {
  ++at_;
  HeldObject object;
  SEALPOINT_ASSIGN_OR_RETURN(object.name, NextText());
  SEALPOINT_ASSIGN_OR_RETURN(object.media_type, NextText());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, NextNumber());
  object.codec = static_cast<Codec>(codec);
  return object;
}

}  // namespace sealpoint::internal
