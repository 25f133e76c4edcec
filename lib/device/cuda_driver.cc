// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_driver.h"

#include <dlfcn.h>

#include <string_view>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::cuda {
namespace {

template <typename Function>
Status Find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function != nullptr) return {};
  return MakeError(Code::kDevice, "the CUDA driver is too old: it has no ", symbol);
}

}  // namespace

Result<Driver> LoadDriver(const std::string& library_name) {
  // Never closed: a driver cannot be unloaded while its threads run.
  void* const library = dlopen(library_name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return MakeError(Code::kDevice, "no CUDA driver: ", reason != nullptr ? reason : library_name);
  }
  Driver driver;
#define SEALPOINT_FIND(member, symbol) \
  SEALPOINT_RETURN_IF_ERROR(Find(library, #symbol, driver.member));
  SEALPOINT_CUDA_FUNCTIONS(SEALPOINT_FIND)
#undef SEALPOINT_FIND
  return driver;
}

Status ToStatus(const Driver& driver, int result, std::string_view call) {
  if (result == kSuccess) return {};
  const char* name = nullptr;
  if (driver.get_error_name(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  return MakeError(Code::kDevice, call, ": ", name, " (", result, ")");
}

CurrentContext::CurrentContext(const Driver& driver, Context* context)
    : driver_(driver), status_(ToStatus(driver, driver.context_push(context), "cuCtxPushCurrent")) {
  if (status_.ok()) driver_.exchange_capture_mode(&capture_mode_);
}

CurrentContext::~CurrentContext() {
  if (!status_.ok()) return;
  driver_.exchange_capture_mode(&capture_mode_);
  Context* popped = nullptr;
  driver_.context_pop(&popped);
}

}  // namespace sealpoint::internal::cuda
