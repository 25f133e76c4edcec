// SPDX-License-Identifier: Apache-2.0
//
// Access to the generated FlatBuffers code for the files of lib/metadata. Nothing else includes it,
// so that no generated type is visible elsewhere.
#ifndef SEALPOINT_LIB_METADATA_GENERATED_TYPES_H_
#define SEALPOINT_LIB_METADATA_GENERATED_TYPES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "schema/index_generated.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/id.h"

namespace sealpoint::internal::metadata {

// Vectors of integers are read in place.
static_assert(std::endian::native == std::endian::little);

using FbNumbers = flatbuffers::Vector<std::uint64_t>;
using FbCounts = flatbuffers::Vector<std::uint32_t>;
using FbShards = flatbuffers::Vector<const fb::ShardRef*>;
using FbBytes = flatbuffers::Vector<std::uint8_t>;
using FbStrings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
using Numbers = std::span<const std::uint64_t>;

inline std::string_view TextOf(const flatbuffers::String* text) {
  return {text->c_str(), text->size()};
}

// Empty if the vector is absent.
inline std::string_view TextOf(const FbBytes* bytes) {
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// Empty if the vector is absent. Precondition: CheckAlignment passed (verify_buffer.cc).
inline Numbers NumbersOf(const FbNumbers* vector) {
  if (vector == nullptr || vector->size() == 0) return {};
  return {vector->data(), vector->size()};
}

template <std::derived_from<Id128> T>
T IdOf(const fb::Bits128* bits) {
  T id;
  std::memcpy(id.bytes.data(), bits, id.bytes.size());
  return id;
}

inline fb::Bits128 BitsOf(const Id128& id) {
  fb::Bits128 bits;
  static_assert(sizeof(bits) == sizeof(id.bytes));
  std::memcpy(static_cast<void*>(&bits), id.bytes.data(), id.bytes.size());
  return bits;
}

// As stored: two little-endian numbers.
inline fb::Bits128 BitsOf(const Fingerprint& fingerprint) {
  fb::Bits128 bits;
  static_assert(sizeof(bits) == sizeof(fingerprint.values()));
  std::memcpy(static_cast<void*>(&bits), fingerprint.values().data(), sizeof(bits));
  return bits;
}

// The values may be too large (R-FPR-01).
inline std::array<std::uint64_t, 2> FingerprintValuesOf(const fb::Bits128& bits) {
  std::array<std::uint64_t, 2> values{};
  std::memcpy(values.data(), &bits, sizeof(bits));
  return values;
}

inline constexpr const char* kManifestIdentifier = "SPMF";
inline constexpr const char* kIndexIdentifier = "SPIX";

// One text per mesh axis.
inline constexpr std::uint32_t kPlacementCountMax = 32;

// PlacementsOfRoot (verify_buffer.cc) reads both roots through the index type, so that their common
// fields must have the same ids: tensors field 0, objects field 1.
static_assert(int{fb::Manifest::VT_TENSORS} == int{fb::Index::VT_TENSORS});
static_assert(int{fb::Manifest::VT_OBJECTS} == int{fb::Index::VT_OBJECTS});

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_GENERATED_TYPES_H_
