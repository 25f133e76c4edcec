// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cufile_driver.h"

#include <dlfcn.h>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::cufile {
namespace {

template <typename Function>
Status Find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function != nullptr) return {};
  return MakeError(Code::kUnsupported, "this cuFile library has no ", symbol);
}

}  // namespace

Result<Driver> LoadDriver(const std::vector<std::string>& library_names) {
  void* library = nullptr;
  std::string reasons;
  for (const std::string& name : library_names) {
    // Never closed: it has threads of its own.
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* const reason = dlerror();
    reasons += StrCat(reasons.empty() ? "" : "; ", reason != nullptr ? reason : name.c_str());
  }
  if (library == nullptr) return MakeError(Code::kUnsupported, "no cuFile library: ", reasons);
  Driver driver;
#define SEALPOINT_FIND(member, symbol) \
  SEALPOINT_RETURN_IF_ERROR(Find(library, #symbol, driver.member));
  SEALPOINT_CUFILE_FUNCTIONS(SEALPOINT_FIND)
#undef SEALPOINT_FIND
  return driver;
}

Status ToStatus(const Outcome& outcome, std::string_view call) {
  if (outcome.error == 0) return {};
  const std::string cuda_error =
      outcome.error == kCudaDriverError ? StrCat(" (CUDA error ", outcome.cuda_error, ")") : "";
  return MakeError(Code::kUnsupported, call, ": cuFile error ", outcome.error, cuda_error);
}

}  // namespace sealpoint::internal::cufile
