// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "lib/c/boundary.h"

namespace sealpoint::c_api {
namespace {

// Made when the library is loaded, never freed: there may be no memory when it is needed.
sealpoint_error& NoMemory() {
  static auto* const error =
      new sealpoint_error(Status(Code::kInternal, "out of memory"));  // NOLINT: lives for ever
  return *error;
}
[[maybe_unused]] const sealpoint_error& made_at_load = NoMemory();

sealpoint_string TextOf(const sealpoint_error* error, const std::string& (*part)(const Status&)) {
  return error == nullptr ? sealpoint_string{"", 0} : Out(part(error->status));
}

}  // namespace

std::int32_t Report(const Status& status, sealpoint_error** error) noexcept {
  if (error != nullptr) *error = nullptr;
  if (status.ok()) return SEALPOINT_OK;
  try {
    if (error != nullptr) *error = new sealpoint_error(status);
  } catch (const std::bad_alloc&) {
    return ReportNoMemory(error);
  }
  return static_cast<std::int32_t>(status.code());
}

std::int32_t ReportNoMemory(sealpoint_error** error) noexcept {
  if (error != nullptr) *error = &NoMemory();
  return SEALPOINT_INTERNAL;
}

std::int32_t ReportException(const char* what, sealpoint_error** error) noexcept {
  try {
    return Report(Status(Code::kInternal, std::string("exception: ") + what), error);
  } catch (const std::bad_alloc&) {
    return ReportNoMemory(error);
  }
}

}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::TextOf;

extern "C" {

int32_t sealpoint_error_create(int32_t code, sealpoint_string message, sealpoint_error** out) {
  return sealpoint::c_api::Guarded(out, [&]() -> Status {
    std::string text;
    SEALPOINT_C_TRY(sealpoint::c_api::Take(message, "message", text));
    const bool is_known = code > SEALPOINT_OK && code <= SEALPOINT_INTERNAL;
    return {static_cast<sealpoint::Code>(is_known ? code : SEALPOINT_INTERNAL), std::move(text)};
  });
}

void sealpoint_error_free(sealpoint_error* error) {
  if (error != &sealpoint::c_api::NoMemory()) delete error;
}

int32_t sealpoint_error_code(const sealpoint_error* error) {
  return error == nullptr ? SEALPOINT_OK : static_cast<std::int32_t>(error->status.code());
}

sealpoint_string sealpoint_error_text(const sealpoint_error* error) {
  return error == nullptr ? sealpoint_string{"", 0} : sealpoint::c_api::Out(error->text);
}

sealpoint_string sealpoint_error_message(const sealpoint_error* error) {
  return TextOf(error, [](const Status& of) -> const std::string& { return of.message(); });
}

sealpoint_string sealpoint_error_rule(const sealpoint_error* error) {
  return TextOf(error, [](const Status& of) -> const std::string& { return of.place().rule; });
}

sealpoint_string sealpoint_error_path(const sealpoint_error* error) {
  return TextOf(error, [](const Status& of) -> const std::string& { return of.place().path; });
}

sealpoint_string sealpoint_error_tensor(const sealpoint_error* error) {
  return TextOf(error, [](const Status& of) -> const std::string& { return of.place().tensor; });
}

sealpoint_string sealpoint_error_object(const sealpoint_error* error) {
  return TextOf(error, [](const Status& of) -> const std::string& { return of.place().object; });
}

sealpoint_string sealpoint_error_host(const sealpoint_error* error) {
  return TextOf(error, [](const Status& of) -> const std::string& { return of.place().host; });
}

int32_t sealpoint_error_offset(const sealpoint_error* error, uint64_t* out) {
  if (error == nullptr || !error->status.place().offset) return 0;
  if (out != nullptr) *out = *error->status.place().offset;
  return 1;
}

int32_t sealpoint_error_rank(const sealpoint_error* error, int32_t* out) {
  if (error == nullptr || !error->status.place().rank) return 0;
  if (out != nullptr) *out = *error->status.place().rank;
  return 1;
}

int32_t sealpoint_error_outcome_is_unknown(const sealpoint_error* error) {
  return error != nullptr && error->status.has_unknown_outcome() ? 1 : 0;
}

}  // extern "C"
