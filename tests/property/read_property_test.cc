// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/property/layout_generators.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/device/host_device.h"
#include "tests/support/device/use_devices.h"
#include "tests/support/storage/reading_storage.h"

// Any stored regions, any wanted regions, any destinations: the bytes are those of the definition,
// and storage gave what the plan announced.

namespace sealpoint::testing {
namespace {

using test::AnyIn;

// A dtype that is not registered: its elements may be as large as a chunk is small.
constexpr auto kAnyDType = static_cast<DType>(999);

struct StoredTensor {
  MiniTensor spec;
  Bytes bytes;  // dense
};

StoredTensor AnyTensor(const std::string& name, int blob_count, DType dtype = kAnyDType) {
  StoredTensor tensor;
  MiniTensor& spec = tensor.spec;
  spec.name = name;
  spec.dtype = dtype;
  spec.element_size = dtype == kAnyDType ? *rc::gen::element(1u, 64u, 256u) : DTypeSizeBytes(dtype);
  spec.codec = *rc::gen::element(Codec::kNone, Codec::kZstd, Codec::kByteSplitZstd);
  spec.shape = test::AnyShape(3, 7);
  const std::uint64_t count = ElementCount(spec.shape).value();
  tensor.bytes = NoiseBytes(AnyIn(0, 1000), count * spec.element_size);
  // Half of it compresses.
  std::fill_n(tensor.bytes.begin(), tensor.bytes.size() / 2, std::byte{7});
  for (const Region& region : test::AnyTiling(spec.shape)) {
    spec.shards.push_back(
        {.region = region,
         .bytes = ExtractRegion(tensor.bytes, spec.shape, spec.element_size, region),
         .blob = static_cast<int>(AnyIn(0, static_cast<std::uint64_t>(blob_count - 1)))});
  }
  return tensor;
}

// Memory around a destination, and what it must hold after the read.
struct Slice {
  Region region;
  std::vector<std::int64_t> strides;
  std::size_t origin = 0;  // of the region's first element, in `memory`
  Bytes memory;
  Bytes expected;
};

// `bytes` are the whole tensor as it is wanted, in elements of this size.
Slice AnySlice(const Shape& shape, const Bytes& bytes, std::uint32_t element_size) {
  Slice slice{.region = test::AnyRegion(shape)};
  const Bytes dense = ExtractRegion(bytes, shape, element_size, slice.region);
  const std::vector<std::uint64_t>& extent = slice.region.box.extent;
  const bool is_whole_box = slice.region == Region::Of(slice.region.box);
  if (!is_whole_box || *rc::gen::arbitrary<bool>()) {
    slice.memory.assign(dense.size(), std::byte{0xee});
    slice.expected = dense;
    return slice;
  }
  // Dimensions in any order, each with padding behind it and any sign.
  std::vector<std::size_t> order(extent.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  for (std::size_t d = order.size(); d > 1; --d) std::swap(order[d - 1], order[AnyIn(0, d - 1)]);
  slice.strides.resize(extent.size());
  std::uint64_t span = element_size;
  for (const std::size_t d : order) {
    const std::uint64_t stride = span + AnyIn(0, 3);
    const bool is_negative = *rc::gen::arbitrary<bool>();
    slice.strides[d] = static_cast<std::int64_t>(stride);
    if (is_negative) {
      slice.strides[d] = -slice.strides[d];
      slice.origin += stride * (extent[d] - 1);
    }
    span = stride * (extent[d] - 1) + span;
  }
  slice.memory.assign(span, std::byte{0xee});
  slice.expected = slice.memory;
  for (std::uint64_t element = 0; element < slice.region.element_count(); ++element) {
    std::uint64_t rest = element;
    auto at = static_cast<std::int64_t>(slice.origin);
    for (std::size_t d = extent.size(); d-- > 0;) {
      at += static_cast<std::int64_t>(rest % extent[d]) * slice.strides[d];
      rest /= extent[d];
    }
    std::copy_n(dense.begin() + static_cast<std::ptrdiff_t>(element * element_size), element_size,
                slice.expected.begin() + at);
  }
  return slice;
}

RC_GTEST_PROP(ReadProperty, AnyRegionsReadAsTheyWereStored, ()) {
  const int blob_count = static_cast<int>(AnyIn(1, 3));
  std::vector<StoredTensor> tensors;
  MiniSpec spec;
  const std::uint64_t tensor_count = AnyIn(1, 3);
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    tensors.push_back(AnyTensor("tensor " + std::to_string(i), blob_count));
    spec.tensors.push_back(tensors.back().spec);
  }
  const auto memory = MemoryStorage();
  StoreFiles(*memory, "c", BuildMini(spec).files);
  const auto storage = std::make_shared<ReadingStorage>(memory);
  const auto checkpoint = Checkpoint::Open("c", {.storage = storage}).value();

  std::vector<Slice> slices;
  std::vector<std::string> names;
  const std::uint64_t slice_count = AnyIn(1, 4);
  for (std::uint64_t i = 0; i < slice_count; ++i) {
    const StoredTensor& tensor = tensors[AnyIn(0, tensors.size() - 1)];
    slices.push_back(AnySlice(tensor.spec.shape, tensor.bytes, tensor.spec.element_size));
    names.push_back(tensor.spec.name);
  }
  ReadRequest request;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    request.Add(names[i], slices[i].region,
                MutableMemoryView::Host(slices[i].memory, slices[i].strides, slices[i].origin));
  }
  storage->ClearLog();
  const auto plan = checkpoint->Plan(request, LoadContract::Partial());
  RC_ASSERT(plan.ok());
  const auto bytes_seen = [&] {
    std::uint64_t sum = 0;
    for (const ReadCall& call : storage->log().reads) sum += call.size;
    return sum;
  };
  RC_ASSERT(bytes_seen() == plan->Summary().table_bytes_read);

  storage->ClearLog();
  const ReadOptions options{.threads = static_cast<int>(AnyIn(1, 2)),
                            .isolate = *rc::gen::arbitrary<bool>()};
  const auto report = checkpoint->Read(*plan, options);
  if (!report) RC_FAIL(report.error().ToString());
  for (const Slice& slice : slices) RC_ASSERT(slice.memory == slice.expected);
  RC_ASSERT(bytes_seen() == plan->Summary().bytes_read);
  // In place a range is read in pieces.
  if (options.isolate) RC_ASSERT(storage->log().reads.size() == plan->Summary().requests);
}

// Elements converted one by one, by the processor.
template <typename From, typename To>
Bytes Converted(const Bytes& bytes) {
  Bytes converted(bytes.size() / sizeof(From) * sizeof(To));
  for (std::size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From from{};
    std::memcpy(&from, bytes.data() + i * sizeof(From), sizeof(From));
    const auto to = static_cast<To>(from);
    std::memcpy(converted.data() + i * sizeof(To), &to, sizeof(To));
  }
  return converted;
}

struct Pair {
  DType from;
  Conversion conversion;
  Bytes (*convert)(const Bytes&);
};

const Pair kPairs[] = {
    {DType::kUInt8, {DType::kInt64}, Converted<std::uint8_t, std::int64_t>},
    {DType::kInt16, {DType::kF32}, Converted<std::int16_t, float>},
    {DType::kInt32, {DType::kF32, Rounding::kNearestEven}, Converted<std::int32_t, float>},
    {DType::kUInt64, {DType::kF64, Rounding::kNearestEven}, Converted<std::uint64_t, double>},
    {DType::kInt32, {DType::kInt32}, Converted<std::int32_t, std::int32_t>},
};

RC_GTEST_PROP(ReadProperty, AnyRegionsAreConvertedElementByElement, ()) {
  const Pair& pair = kPairs[AnyIn(0, std::size(kPairs) - 1)];
  const StoredTensor tensor = AnyTensor("t", 2, pair.from);
  const auto memory = MemoryStorage();
  StoreFiles(*memory, "c", BuildMini({.tensors = {tensor.spec}}).files);
  const auto checkpoint = Checkpoint::Open("c", {.storage = memory}).value();

  const Bytes all = pair.convert(tensor.bytes);
  std::vector<Slice> slices;
  const std::uint64_t slice_count = AnyIn(1, 3);
  for (std::uint64_t i = 0; i < slice_count; ++i) {
    slices.push_back(AnySlice(tensor.spec.shape, all, DTypeSizeBytes(pair.conversion.to)));
  }
  ReadRequest request;
  for (Slice& slice : slices) {
    request.Add("t", slice.region,
                MutableMemoryView::Host(slice.memory, slice.strides, slice.origin));
    request.items.back().convert = pair.conversion;
  }
  const auto report = checkpoint->Load(request, LoadContract::Partial(),
                                       {.threads = static_cast<int>(AnyIn(1, 2))});
  if (!report) RC_FAIL(report.error().ToString());
  for (const Slice& slice : slices) RC_ASSERT(slice.memory == slice.expected);
}

// To devices that are late, with budgets of few slots, beside destinations on the host.
RC_GTEST_PROP(ReadProperty, AnyRegionsReachDevicesAsTheyWereStored, ()) {
  const bool converts = *rc::gen::arbitrary<bool>();
  const Pair& pair = kPairs[AnyIn(0, std::size(kPairs) - 1)];
  const StoredTensor tensor = converts ? AnyTensor("t", 2, pair.from) : AnyTensor("t", 2);
  const Bytes all = converts ? pair.convert(tensor.bytes) : tensor.bytes;
  const auto storage = MemoryStorage();
  StoreFiles(*storage, "c", BuildMini({.tensors = {tensor.spec}}).files);
  const auto checkpoint =
      Checkpoint::Open("c", {.storage = storage, .memory_budget_bytes = AnyIn(1, 8) * 64 * kKiB})
          .value();
  const auto devices = std::make_shared<HostDevice>(
      HostDeviceOptions{.seed = AnyIn(1, 1000),
                        .delay_max = std::chrono::microseconds(AnyIn(0, 20)),
                        .piece_bytes_max = AnyIn(16, 4096)});
  UseDevices(*checkpoint, devices);

  const std::uint32_t element_size =
      converts ? DTypeSizeBytes(pair.conversion.to) : tensor.spec.element_size;
  std::vector<Slice> slices;
  std::vector<std::unique_ptr<DeviceMemory>> memories;  // null: on the host
  ReadRequest request;
  const std::uint64_t slice_count = AnyIn(1, 3);
  for (std::uint64_t i = 0; i < slice_count; ++i) {
    slices.push_back(AnySlice(tensor.spec.shape, all, element_size));
    memories.push_back(nullptr);
  }
  for (std::uint64_t i = 0; i < slice_count; ++i) {
    Slice& slice = slices[i];
    auto view = MutableMemoryView::Host(slice.memory, slice.strides, slice.origin);
    if (AnyIn(0, 3) != 0) {
      const int device = static_cast<int>(AnyIn(0, 1));
      memories[i] = devices->Allocate(device, slice.memory.size());
      std::copy(slice.memory.begin(), slice.memory.end(), memories[i]->contents().begin());
      view = MutableMemoryView::Cuda(memories[i]->addresses(), device, nullptr, slice.strides,
                                     slice.origin);
    }
    request.Add("t", slice.region, view);
    if (converts) request.items.back().convert = pair.conversion;
  }
  const auto report = checkpoint->Load(
      request, LoadContract::Partial(),
      {.threads = static_cast<int>(AnyIn(1, 3)), .verify_on_device = *rc::gen::arbitrary<bool>()});
  if (!report) RC_FAIL(report.error().ToString());
  for (std::uint64_t i = 0; i < slice_count; ++i) {
    const ByteSpan arrived = memories[i] ? ByteSpan(memories[i]->contents()) : slices[i].memory;
    RC_ASSERT(std::equal(arrived.begin(), arrived.end(), slices[i].expected.begin()));
  }
}

}  // namespace
}  // namespace sealpoint::testing
