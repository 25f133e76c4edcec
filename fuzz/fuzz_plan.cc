// SPDX-License-Identifier: Apache-2.0
//
// Proves for any request to any stored layout that it is refused cleanly before a destination is
// touched, or that each requested element arrives exactly once at its place, that nothing else is
// written, and that as many bytes were read from storage as the plan announced.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fuzz/support/take_layout.h"
#include "fuzz/support/target.h"
#include "lib/base/internal_access.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/checkpoint.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::fuzz {
namespace {

using testing::MiniTensor;

constexpr std::uint64_t kElementsMax = 2048;
constexpr std::byte kUntouched{0xee};

struct Stored {
  MiniTensor spec;
  Bytes bytes;  // dense
};

Stored TakeTensor(InputReader& input, std::size_t number, std::uint64_t blob_count) {
  constexpr std::uint32_t kSizes[] = {1, 2, 4, 8, 16, 64, 256};
  Stored tensor;
  tensor.spec.name = "t" + std::to_string(number);
  tensor.spec.element_size = kSizes[input.TakeBelow(std::size(kSizes))];
  // Not registered, so that any element size is right.
  tensor.spec.dtype = static_cast<DType>(1000 + input.Take8() % 2);
  tensor.spec.codec = static_cast<Codec>(input.Take8() % 3);
  tensor.spec.chunk_size = std::uint64_t{4096} << input.Take8() % 3;
  tensor.spec.shape = TakeShape(input, kElementsMax);
  if (input.Take8() % 16 == 0) {
    tensor.spec.shape.push_back(0);
    return tensor;
  }
  const std::uint64_t count = ElementCount(tensor.spec.shape).value();
  tensor.bytes = testing::NoiseBytes(input.Take8(), count * tensor.spec.element_size);
  std::fill_n(tensor.bytes.begin(), tensor.bytes.size() / 2, std::byte{7});  // compresses
  for (const Region& region : TakeTiling(input, tensor.spec.shape)) {
    tensor.spec.shards.push_back({.region = region,
                                  .bytes = testing::ExtractRegion(tensor.bytes, tensor.spec.shape,
                                                                  tensor.spec.element_size, region),
                                  .blob = static_cast<int>(input.TakeBelow(blob_count))});
  }
  return tensor;
}

// One item of a request, the memory around its destination and what must be in there afterwards.
struct Slice {
  ReadItem item;
  Bytes memory;
  Bytes expected;
  std::uint64_t wanted_bytes = 0;
  bool is_legal = true;
};

void Expect(const Stored& tensor, const Region& region, const MemoryLayout& layout, Slice& slice) {
  const std::uint32_t element_size = tensor.spec.element_size;
  slice.memory.assign(layout.size, kUntouched);
  slice.expected = slice.memory;
  slice.wanted_bytes = region.element_count() * element_size;
  for (std::uint64_t i = 0; i < region.element_count(); ++i) {
    const std::size_t from = ElementNumber(tensor.spec.shape, region, i) * element_size;
    const std::size_t to = ElementOffset(layout, region, element_size, i);
    std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from), element_size,
                slice.expected.begin() + static_cast<std::ptrdiff_t>(to));
  }
  slice.item.destination =
      layout.strides.empty()
          ? MutableMemoryView::Host(
                std::span(slice.memory).subspan(layout.origin, slice.wanted_bytes))
          : MutableMemoryView::Host(slice.memory, layout.strides, layout.origin);
}

// Numbers of a region that cannot be right: the shape is exceeded by one of them at least.
Region BreakRegion(InputReader& input, const Shape& shape, Region region) {
  const unsigned action = input.Take8() % 6;
  if (action == 0 || shape.empty()) {
    region.run.end = input.TakeIn(1, 3) + region.run.end + Region::Of(region.box).run.end;
  } else if (action == 1) {
    region.run.begin = region.run.end;
  } else if (action == 2) {
    region.box.offset.push_back(0);
  } else if (action == 3) {
    region.box.extent[input.TakeBelow(shape.size())] = 0;
  } else if (action == 4) {
    const std::size_t d = input.TakeBelow(shape.size());
    region.box.offset[d] = ~std::uint64_t{0} - input.Take8();
  } else {
    const std::size_t d = input.TakeBelow(shape.size());
    region.box.extent[d] = shape[d] - region.box.offset[d] + 1 + input.Take8();
  }
  return region;
}

Slice TakeSlice(InputReader& input, const Stored& tensor) {
  Slice slice{.item = {.tensor = tensor.spec.name}};
  const Shape& shape = tensor.spec.shape;
  const bool is_empty = tensor.bytes.empty();
  const unsigned kind = input.Take8() % 16;
  if (is_empty && kind != 0) return slice;  // requested whole, into no memory
  Region region = is_empty ? Region{} : Region::Whole(shape);
  if (!is_empty && kind < 12) {
    region = TakeRegion(input, shape);
    slice.item.region = region;
  }
  if (!is_empty) {
    Expect(tensor, region, TakeLayout(input, region, tensor.spec.element_size, true), slice);
  }
  if (kind == 0) {
    slice.item.region = is_empty ? region : BreakRegion(input, shape, region);
    slice.is_legal = false;
  } else if (kind == 1) {
    slice.item.destination.data = nullptr;
    slice.is_legal = false;
  } else if (kind == 2) {  // as many strides as a tensor of another number of dimensions has
    slice.item.destination.strides_bytes.resize(shape.size() + 1, 1 << 20);
    slice.is_legal = false;
  }
  return slice;
}

LoadContract TakeContract(InputReader& input) {
  const auto policy = [&input] { return static_cast<OnMismatch>(input.TakeBelow(3)); };
  if (input.TakeBool()) return LoadContract::Partial();
  return {.missing = policy(), .unexpected = policy(), .dtype = policy(), .shape = policy()};
}

struct Request {
  std::vector<Slice> slices;
  LoadContract contract;
  bool is_legal = true;
  std::size_t findings = 0;  // those that the contract asks to be reported
};

void Check(OnMismatch policy, Request& request) {
  if (policy == OnMismatch::kError) request.is_legal = false;
  if (policy == OnMismatch::kReport) ++request.findings;
}

// What the caller claims about the tensor, true or not.
void TakeBelief(InputReader& input, const Stored& tensor, Slice& slice, Request& request) {
  const unsigned kind = input.Take8() % 8;
  if (kind == 0) {
    slice.item.dtype = static_cast<DType>(1000 + input.Take8() % 2);
    if (*slice.item.dtype != tensor.spec.dtype) Check(request.contract.dtype, request);
  } else if (kind == 1 && slice.item.region) {
    slice.item.shape = tensor.spec.shape;
    if (input.TakeBool()) {
      slice.item.shape->push_back(1);
      Check(request.contract.shape, request);
    }
  }
}

Request TakeRequest(InputReader& input, const std::vector<Stored>& tensors) {
  Request request{.slices = {}, .contract = TakeContract(input)};
  std::set<std::string> wanted;
  for (std::uint64_t count = input.TakeBelow(7); count > 0; --count) {
    if (input.Take8() % 16 == 0) {
      request.slices.push_back({.item = {.tensor = "absent"}});
      Check(request.contract.missing, request);
      continue;
    }
    const Stored& tensor = tensors[input.TakeBelow(tensors.size())];
    Slice slice = TakeSlice(input, tensor);
    TakeBelief(input, tensor, slice, request);
    request.is_legal = request.is_legal && slice.is_legal;
    wanted.insert(tensor.spec.name);
    request.slices.push_back(std::move(slice));
  }
  for (std::size_t i = wanted.size(); i < tensors.size(); ++i) {
    Check(request.contract.unexpected, request);
  }
  return request;
}

std::uint64_t BytesRead(const testing::ReadingStorage& storage) {
  std::uint64_t sum = 0;
  for (const testing::ReadCall& call : storage.log().reads) sum += call.size;
  return sum;
}

void RequireUntouched(const Request& request) {
  for (const Slice& slice : request.slices) {
    Require(std::ranges::all_of(slice.memory, [](std::byte b) { return b == kUntouched; }),
            "planning writes to a destination");
  }
}

void CheckRefusal(const Status& error, const Request& request) {
  Require(!request.is_legal, "a legal request is refused: " + error.ToString());
  Require(error.code() == Code::kInvalidArgument || error.code() == Code::kMismatch ||
              error.code() == Code::kLimitExceeded,
          "refused with another error: " + error.ToString());
  RequireUntouched(request);
}

void CheckPlan(const ReadPlan& plan, const Request& request) {
  Require(request.is_legal, "an illegal request is planned");
  Require(plan.findings().size() == request.findings, "other findings than the contract asks for");
  std::uint64_t wanted = 0;
  for (const Slice& slice : request.slices) wanted += slice.wanted_bytes;
  std::uint64_t copied = 0;
  for (const auto& copy : InternalAccess::DataOf(plan).copies) copied += copy.byte_count();
  Require(wanted == plan.Summary().bytes_requested && wanted == copied,
          "the plan delivers another number of bytes than are wanted");
  Require(!plan.Explain().empty(), "a plan without explanation");
}

void CheckRequest(InputReader& input, const Checkpoint& checkpoint, Request& request,
                  testing::ReadingStorage& storage) {
  ReadRequest wanted;
  for (Slice& slice : request.slices) wanted.items.push_back(slice.item);
  storage.ClearLog();
  const Result<ReadPlan> plan = checkpoint.Plan(wanted, request.contract);
  if (!plan.ok()) return CheckRefusal(plan.error(), request);
  CheckPlan(*plan, request);
  RequireUntouched(request);
  Require(BytesRead(storage) == plan->Summary().table_bytes_read, "planning reads other tables");

  storage.ClearLog();
  const ReadOptions options{.threads = static_cast<int>(input.TakeIn(1, 2)),
                            .isolate = input.TakeBool()};
  const auto report = checkpoint.Read(*plan, options);
  Require(report.ok(), "a legal plan fails: " + report.status().ToString());
  Require(BytesRead(storage) == plan->Summary().bytes_read, "storage gave other bytes");
  for (const Slice& slice : request.slices) {
    Require(slice.memory == slice.expected, "an element is wrong, missing or out of place");
  }
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input describes tensors and how they are stored, then requests.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::InputReader input(fuzz::AsInput(data, size));
  const std::uint64_t blob_count = input.TakeIn(1, 3);
  std::vector<fuzz::Stored> tensors;
  testing::MiniSpec spec;
  for (std::uint64_t count = input.TakeIn(1, 3); count > 0; --count) {
    tensors.push_back(fuzz::TakeTensor(input, tensors.size(), blob_count));
    spec.tensors.push_back(tensors.back().spec);
  }
  const auto memory = MemoryStorage();
  testing::StoreFiles(*memory, "c", BuildMini(spec).files);
  const auto storage = std::make_shared<testing::ReadingStorage>(memory);
  const std::uint64_t budget = input.TakeBool() ? 256 * kMiB : 128 * kKiB;
  const auto checkpoint =
      Checkpoint::Open("c", {.storage = storage, .memory_budget_bytes = budget}).value();
  for (std::uint64_t count = input.TakeIn(1, 2); count > 0; --count) {
    fuzz::Request request = fuzz::TakeRequest(input, tensors);
    fuzz::CheckRequest(input, *checkpoint, request, *storage);
  }
  return 0;
}
