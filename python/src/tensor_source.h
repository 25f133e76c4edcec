// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_TENSOR_SOURCE_H_
#define SEALPOINT_PYTHON_SRC_TENSOR_SOURCE_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "python/src/arrays.h"
#include "python/src/values.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/memory_view.h"

namespace sealpoint::python {

// How tensors are stored.
struct Encoding {
  Codec codec = Codec::kNone;
  int codec_level = 1;
  std::uint64_t chunk_size_bytes = 0;
};

// What a tensor's array holds: the array's dtype and shape, or those of raw bytes.
struct TensorSource {
  TensorSpec spec{};
  Shape extent{};  // of the array
  MemoryView view{};
};

// `array` is an array, or (array, dtype's name) for elements that numpy has no dtype for: integers
// of the same size, or bytes with one more axis. Throws InvalidArgument.
TensorSource SourceOf(ArrayReader& arrays, std::string name, nb::handle array,
                      const Encoding& encoding);

// The bytes of an object: those of bytes or of anything with the buffer protocol, or of (bytes,
// media type).
struct ObjectSource {
  std::string media_type = "application/octet-stream";
  ByteSpan bytes{};
};
ObjectSource ObjectSourceOf(ArrayReader& arrays, const std::string& name, nb::handle object);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_TENSOR_SOURCE_H_
