// SPDX-License-Identifier: Apache-2.0
#include "lib/c/read.h"

#include <array>
#include <new>

#include "lib/c/checkpoint.h"
#include "lib/c/memory.h"

struct sealpoint_read_plan {
  std::shared_ptr<const sealpoint::Checkpoint> checkpoint;  // whose tables it refers to
  sealpoint::ReadPlan plan;
};

namespace sealpoint::c_api {
namespace {

Status TakeItemOptions(const sealpoint_item_options* given, ReadItem& taken) {
  sealpoint_item_options options;
  SEALPOINT_C_TRY(Take(given, options));
  if (options.expected_dtype != SEALPOINT_DTYPE_NONE) {
    SEALPOINT_C_TRY(TakeDType(options.expected_dtype, taken.dtype.emplace()));
  }
  if (options.expected_shape != nullptr) {
    SEALPOINT_C_TRY(TakeShape(options.expected_shape, options.expected_ndim, "expected_shape",
                              taken.shape.emplace()));
  }
  SEALPOINT_C_TRY(CheckEnum(options.rounding, SEALPOINT_ROUND_NEAREST_EVEN, "rounding"));
  if (options.convert_to != SEALPOINT_DTYPE_NONE) {
    Conversion& conversion = taken.convert.emplace();
    SEALPOINT_C_TRY(TakeDType(options.convert_to, conversion.to));
    conversion.rounding = static_cast<Rounding>(options.rounding);
  }
  return {};
}

// Everything of an item but its memory.
Status TakeItem(sealpoint_string tensor, const sealpoint_region* region,
                const sealpoint_item_options* options, ReadItem& taken) {
  SEALPOINT_C_TRY(Take(tensor, "tensor", taken.tensor));
  SEALPOINT_C_TRY(TakeRegion(region, taken.region));
  return TakeItemOptions(options, taken);
}

Status AddArray(const sealpoint_dl_tensor* destination, void* stream, ReadItem item,
                ReadRequest& request) {
  Array array;
  SEALPOINT_C_TRY(TakeArray(destination, stream, array));
  if (item.region) {
    SEALPOINT_C_TRY(CheckArrayShape(array, item.region, {}));
  } else if (item.shape) {
    SEALPOINT_C_TRY(CheckArrayShape(array, {}, *item.shape));
  } else {
    item.shape = array.shape;  // the plan compares it
  }
  item.destination = std::move(array.view);
  request.items.push_back(std::move(item));
  return {};
}

Status CheckManaged(const sealpoint_dl_managed_tensor* array, sealpoint_string tensor) {
  constexpr std::uint64_t kReadOnly = 1;
  SEALPOINT_C_TRY(NotNull(array, "destination"));
  if (array->version.major != 1) {
    return {Code::kUnsupported, "the array has version " + std::to_string(array->version.major) +
                                    " of DLPack, expected 1"};
  }
  if ((array->flags & kReadOnly) == 0) return {};
  return Status(Code::kInvalidArgument,
                "the array is read only, expected one that may be written to")
      .AtTensor(
          {tensor.data == nullptr ? "" : tensor.data, tensor.data == nullptr ? 0 : tensor.size});
}

Status AddMemory(const sealpoint_destination* destination, ReadItem item, ReadRequest& request) {
  SEALPOINT_C_TRY(TakeDestination(destination, item.destination));
  request.items.push_back(std::move(item));
  return {};
}

Status TakeDifference(std::uint32_t given, std::string_view what, OnMismatch& taken) {
  SEALPOINT_C_TRY(CheckEnum(given, SEALPOINT_DIFFERENCE_ALLOW, what));
  if (given != SEALPOINT_DIFFERENCE_DEFAULT) taken = static_cast<OnMismatch>(given - 1);
  return {};
}

Status TakeReadOptions(const sealpoint_read_options* given, ReadOptions& taken) {
  sealpoint_read_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.threads = ThreadsOf(options.threads);
  taken.isolate = options.isolate != 0;
  taken.verify_on_device = options.verify_on_device != 0;
  taken.on_progress = ProgressOf(options.on_progress, options.user);
  return {};
}

// The memory of an array that is handed out.
struct OwnedArray {
  static constexpr std::align_val_t kAlignment{256};  // what DLPack asks for

  explicit OwnedArray(std::uint64_t size_bytes)
      : data(static_cast<std::byte*>(::operator new(size_bytes, kAlignment))) {}
  OwnedArray(const OwnedArray&) = delete;
  OwnedArray& operator=(const OwnedArray&) = delete;
  ~OwnedArray() { ::operator delete(data, kAlignment); }

  sealpoint_dl_managed_tensor managed{};
  std::array<std::int64_t, kNdimMax> shape{};
  std::array<std::int64_t, kNdimMax> strides{};
  std::byte* data;
};

// An array of these elements, dense.
Result<std::unique_ptr<OwnedArray>> NewArray(DType dtype, const Shape& shape,
                                             std::uint64_t size_bytes) {
  constexpr std::uint64_t kIsCopied = 2;
  const auto dl_dtype = DlDtypeOf(dtype);
  if (!dl_dtype.ok()) return dl_dtype.error();
  auto array = std::make_unique<OwnedArray>(size_bytes);
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    array->shape[i] = static_cast<std::int64_t>(shape[i]);
    array->strides[i] = stride;
    stride *= array->shape[i];
  }
  sealpoint_dl_managed_tensor& managed = array->managed;
  managed.version.major = 1;
  managed.version.minor = 1;
  managed.manager_ctx = array.get();
  managed.deleter = [](sealpoint_dl_managed_tensor* self) {
    delete static_cast<OwnedArray*>(self->manager_ctx);
  };
  managed.flags = kIsCopied;
  managed.dl_tensor.data = size_bytes == 0 ? nullptr : array->data;
  managed.dl_tensor.device.device_type =
      static_cast<decltype(managed.dl_tensor.device.device_type)>(1);
  managed.dl_tensor.ndim = static_cast<std::int32_t>(shape.size());
  managed.dl_tensor.dtype.code = dl_dtype->code;
  managed.dl_tensor.dtype.bits = dl_dtype->bits;
  managed.dl_tensor.dtype.lanes = dl_dtype->lanes;
  managed.dl_tensor.shape = array->shape.data();
  managed.dl_tensor.strides = array->strides.data();
  return array;
}

Result<std::unique_ptr<OwnedArray>> ReadArray(const Checkpoint& checkpoint, ReadItem item,
                                              const ReadOptions& options) {
  const auto info = checkpoint.FindTensor(item.tensor);
  if (!info) {
    return Status(Code::kNotFound, "there is no tensor of this name")
        .AtPath(checkpoint.path())
        .AtTensor(item.tensor);
  }
  Shape shape = info->shape;
  if (item.region) {
    // Before memory is asked for in its size.
    SEALPOINT_C_TRY(HasElements(info->shape, *item.region).status().AtTensor(item.tensor));
    const bool is_whole_box = *item.region == Region::Of(item.region->box);
    shape = is_whole_box ? item.region->box.extent : Shape{item.region->element_count()};
  }
  // Within what is stored, so it fits.
  const std::uint64_t size_bytes = ElementCount(shape).value_or(0) * info->element_size;
  auto array = NewArray(info->dtype, shape, size_bytes);
  if (!array.ok()) return std::move(array).error().AtTensor(item.tensor);
  item.destination = MutableMemoryView::Host((*array)->data, size_bytes);
  ReadRequest request;
  request.items.push_back(std::move(item));
  const auto report = checkpoint.Load(request, LoadContract::Partial(), options);
  if (!report.ok()) return report.error();
  return array;
}

}  // namespace

Status TakeContract(const sealpoint_contract* given, LoadContract& taken) {
  sealpoint_contract contract;
  SEALPOINT_C_TRY(Take(given, contract));
  SEALPOINT_C_TRY(TakeDifference(contract.missing, "missing", taken.missing));
  SEALPOINT_C_TRY(TakeDifference(contract.unexpected, "unexpected", taken.unexpected));
  SEALPOINT_C_TRY(TakeDifference(contract.dtype, "dtype", taken.dtype));
  SEALPOINT_C_TRY(TakeDifference(contract.shape, "shape", taken.shape));
  return TakeDifference(contract.coverage, "coverage", taken.coverage);
}

}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::AddTo;
using sealpoint::c_api::CheckOut;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Out;
using sealpoint::c_api::TakeItem;

extern "C" {

int32_t sealpoint_read_request_create(sealpoint_read_request** out, sealpoint_error** error) {
  return Make(out, error, []() -> sealpoint::Result<std::unique_ptr<sealpoint_read_request>> {
    return std::make_unique<sealpoint_read_request>();
  });
}

void sealpoint_read_request_free(sealpoint_read_request* request) { delete request; }

int32_t sealpoint_read_request_add(sealpoint_read_request* request, sealpoint_string tensor,
                                   const sealpoint_region* region,
                                   const sealpoint_destination* destination,
                                   const sealpoint_item_options* options, sealpoint_error** error) {
  return Guarded(error, [&] {
    return AddTo(request, [&](sealpoint::ReadRequest& items) -> Status {
      sealpoint::ReadItem item;
      SEALPOINT_C_TRY(TakeItem(tensor, region, options, item));
      return sealpoint::c_api::AddMemory(destination, std::move(item), items);
    });
  });
}

int32_t sealpoint_read_request_add_dlpack(sealpoint_read_request* request, sealpoint_string tensor,
                                          const sealpoint_region* region,
                                          const sealpoint_dl_tensor* destination, void* stream,
                                          const sealpoint_item_options* options,
                                          sealpoint_error** error) {
  return Guarded(error, [&] {
    return AddTo(request, [&](sealpoint::ReadRequest& items) -> Status {
      sealpoint::ReadItem item;
      SEALPOINT_C_TRY(TakeItem(tensor, region, options, item));
      return sealpoint::c_api::AddArray(destination, stream, std::move(item), items);
    });
  });
}

int32_t sealpoint_read_request_add_dlpack_managed(
    sealpoint_read_request* request, sealpoint_string tensor, const sealpoint_region* region,
    const sealpoint_dl_managed_tensor* destination, void* stream,
    const sealpoint_item_options* options, sealpoint_error** error) {
  return Guarded(error, [&] {
    return AddTo(request, [&](sealpoint::ReadRequest& items) -> Status {
      sealpoint::ReadItem item;
      SEALPOINT_C_TRY(sealpoint::c_api::CheckManaged(destination, tensor));
      SEALPOINT_C_TRY(TakeItem(tensor, region, options, item));
      return sealpoint::c_api::AddArray(&destination->dl_tensor, stream, std::move(item), items);
    });
  });
}

int32_t sealpoint_checkpoint_plan(const sealpoint_checkpoint* checkpoint,
                                  const sealpoint_read_request* request,
                                  const sealpoint_contract* contract, sealpoint_read_plan** out,
                                  sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_read_plan>> {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(NotNull(request, "request"));
    sealpoint::LoadContract taken;
    SEALPOINT_C_TRY(sealpoint::c_api::TakeContract(contract, taken));
    auto plan = checkpoint->checkpoint->Plan(request->request, taken);
    if (!plan.ok()) return plan.error();
    return std::unique_ptr<sealpoint_read_plan>(
        new sealpoint_read_plan{checkpoint->checkpoint, std::move(plan).value()});
  });
}

void sealpoint_read_plan_free(sealpoint_read_plan* plan) { delete plan; }

int32_t sealpoint_read_plan_summary(const sealpoint_read_plan* plan, sealpoint_plan_summary* out,
                                    sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(plan, "plan"));
    SEALPOINT_C_TRY(CheckOut(out));
    const sealpoint::PlanSummary summary = plan->plan.Summary();
    sealpoint_plan_summary filled{};
    filled.item_count = summary.items;
    filled.bytes_requested = summary.bytes_requested;
    filled.bytes_read = summary.bytes_read;
    filled.table_bytes_read = summary.table_bytes_read;
    filled.file_count = summary.files;
    filled.request_count = summary.requests;
    filled.chunk_count = summary.chunks;
    filled.finding_count = plan->plan.findings().size();
    return sealpoint::c_api::Fill(filled, out);
  });
}

int32_t sealpoint_read_plan_explain(const sealpoint_read_plan* plan, sealpoint_buffer** out,
                                    sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_buffer>> {
    SEALPOINT_C_TRY(NotNull(plan, "plan"));
    const std::string text = plan->plan.Explain();
    const sealpoint::ByteSpan bytes = sealpoint::AsBytes(text);
    return std::make_unique<sealpoint_buffer>(sealpoint::Bytes(bytes.begin(), bytes.end()));
  });
}

int32_t sealpoint_read_plan_finding(const sealpoint_read_plan* plan, uint64_t index,
                                    sealpoint_string* tensor, sealpoint_string* detail,
                                    sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(plan, "plan"));
    const auto& findings = plan->plan.findings();
    SEALPOINT_C_TRY(sealpoint::c_api::CheckIndex(index, findings.size(), "findings"));
    if (tensor != nullptr) *tensor = Out(findings[index].tensor);
    if (detail != nullptr) *detail = Out(findings[index].detail);
    return {};
  });
}

int32_t sealpoint_checkpoint_read(const sealpoint_checkpoint* checkpoint,
                                  const sealpoint_read_plan* plan,
                                  const sealpoint_read_options* options, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(NotNull(plan, "plan"));
    sealpoint::ReadOptions taken;
    SEALPOINT_C_TRY(sealpoint::c_api::TakeReadOptions(options, taken));
    return checkpoint->checkpoint->Read(plan->plan, taken).status();
  });
}

int32_t sealpoint_checkpoint_read_tensor(const sealpoint_checkpoint* checkpoint,
                                         sealpoint_string tensor, const sealpoint_region* region,
                                         const sealpoint_destination* destination,
                                         const sealpoint_read_options* options,
                                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    sealpoint::ReadItem item;
    sealpoint::ReadRequest request;
    sealpoint::ReadOptions taken;
    SEALPOINT_C_TRY(TakeItem(tensor, region, nullptr, item));
    SEALPOINT_C_TRY(sealpoint::c_api::AddMemory(destination, std::move(item), request));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeReadOptions(options, taken));
    return checkpoint->checkpoint->Load(request, sealpoint::LoadContract::Partial(), taken)
        .status();
  });
}

int32_t sealpoint_checkpoint_read_dlpack(const sealpoint_checkpoint* checkpoint,
                                         sealpoint_string tensor, const sealpoint_region* region,
                                         const sealpoint_read_options* options,
                                         sealpoint_dl_managed_tensor** out,
                                         sealpoint_error** error) {
  if (out != nullptr) *out = nullptr;
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(out, "out"));
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    sealpoint::ReadItem item;
    sealpoint::ReadOptions taken;
    SEALPOINT_C_TRY(TakeItem(tensor, region, nullptr, item));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeReadOptions(options, taken));
    auto array = sealpoint::c_api::ReadArray(*checkpoint->checkpoint, std::move(item), taken);
    if (!array.ok()) return array.error();
    *out = &std::move(array).value().release()->managed;
    return {};
  });
}

}  // extern "C"
