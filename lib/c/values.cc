// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "lib/c/boundary.h"
#include "sealpoint/dtype.h"
#include "sealpoint/status.h"
#include "sealpoint/version.h"

namespace sealpoint::c_api {
namespace {

// What ends a call in which a callback of the program asked for that.
class EndedByCallback final : public std::exception {
  const char* what() const noexcept override { return "it returned another number than 0"; }
};

}  // namespace

Status CheckStructSize(std::uint32_t size, std::uint32_t first_size) {
  if (size >= first_size && size <= kStructSizeMax) return {};
  return {Code::kInvalidArgument, "struct_size is " + std::to_string(size) +
                                      ", expected at least " + std::to_string(first_size) +
                                      " (set by sealpoint_init)"};
}

Status CheckUnknownTail(const void* tail, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(tail);
  if (std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 0; })) return {};
  return {Code::kUnsupported,
          "an option is set that this version (" + std::string(VersionString()) +
              ") does not support; set it to zero, or use the library version of the header"};
}

Status CheckArray(const void* data, std::uint64_t count, std::string_view what) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (count == 0) return {};
  if (data == nullptr) {
    return {Code::kInvalidArgument,
            std::string(what) + " is NULL, expected " + std::to_string(count) + " of them"};
  }
  if (count <= kMax / 64) return {};
  return {Code::kInvalidArgument,
          std::string(what) + " has a size of " + std::to_string(count) + ", more than memory"};
}

Status Take(sealpoint_string given, std::string_view what, std::string_view& taken) {
  SEALPOINT_C_TRY(CheckArray(given.data, given.size, what));
  taken = given.size == 0 ? std::string_view("") : std::string_view(given.data, given.size);
  return {};
}

Status Take(sealpoint_string given, std::string_view what, std::string& taken) {
  std::string_view text;
  SEALPOINT_C_TRY(Take(given, what, text));
  taken = text;
  return {};
}

Status Take(sealpoint_bytes given, std::string_view what, ByteSpan& taken) {
  SEALPOINT_C_TRY(CheckArray(given.data, given.size, what));
  // A byte string of no bytes is one all the same: what is bound must not be null.
  static constexpr std::byte kNone{};
  taken = given.size == 0 ? ByteSpan(&kNone, 0)
                          : ByteSpan(static_cast<const std::byte*>(given.data), given.size);
  return {};
}

Status CheckEnum(std::uint32_t value, std::uint32_t greatest, std::string_view what) {
  if (value <= greatest) return {};
  return {Code::kInvalidArgument, std::string(what) + " is " + std::to_string(value) +
                                      ", expected at most " + std::to_string(greatest)};
}

Status CheckIndex(std::uint64_t index, std::uint64_t count, std::string_view what) {
  if (index < count) return {};
  return {Code::kInvalidArgument, "number " + std::to_string(index) + " of the " +
                                      std::string(what) + ", of which there are " +
                                      std::to_string(count)};
}

sealpoint_id Out(const Id128& id) {
  sealpoint_id out;
  std::memcpy(out.bytes, id.bytes.data(), sizeof(out.bytes));
  return out;
}

PhaseCallback ProgressOf(sealpoint_progress_function function, void* user) {
  if (function == nullptr) return {};
  return [function, user](const PhaseEvent& event) {
    const sealpoint_progress progress = {
        sizeof(progress),  0,         Out(PhaseName(event.phase)), event.bytes_done,
        event.bytes_total, event.step};
    if (function(user, &progress) != 0) throw EndedByCallback();
  };
}

}  // namespace sealpoint::c_api

using sealpoint::Id128;
using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Out;
using sealpoint::c_api::Take;

extern "C" {

uint32_t sealpoint_abi_version(void) { return SEALPOINT_ABI_VERSION; }

sealpoint_string sealpoint_version(void) { return Out(sealpoint::VersionString()); }

void sealpoint_init(void* sized_struct, uint32_t size_bytes) {
  if (sized_struct == nullptr || size_bytes < sizeof(size_bytes)) return;
  std::memset(sized_struct, 0, size_bytes);
  std::memcpy(sized_struct, &size_bytes, sizeof(size_bytes));
}

sealpoint_string sealpoint_code_name(int32_t code) {
  const bool is_known = code >= SEALPOINT_OK && code <= SEALPOINT_INTERNAL;
  return Out(is_known ? sealpoint::CodeName(static_cast<sealpoint::Code>(code)) : "Unknown");
}

sealpoint_string sealpoint_dtype_name(uint32_t dtype) {
  return Out(sealpoint::DTypeName(static_cast<sealpoint::DType>(std::min(dtype, 0xFFFFU))));
}

uint32_t sealpoint_dtype_size_bytes(uint32_t dtype) {
  return sealpoint::DTypeSizeBytes(static_cast<sealpoint::DType>(std::min(dtype, 0xFFFFU)));
}

uint32_t sealpoint_dtype_of_name(sealpoint_string name) {
  if (name.data == nullptr) return SEALPOINT_DTYPE_NONE;
  const auto info = sealpoint::FindDType(std::string_view(name.data, name.size));
  return static_cast<uint32_t>(info ? info->dtype : sealpoint::DType::kNone);
}

sealpoint_string sealpoint_verdict_name(uint32_t verdict) {
  const bool is_known = verdict <= SEALPOINT_VERDICT_UNREADABLE;
  return Out(is_known ? sealpoint::VerdictName(static_cast<sealpoint::Verdict>(verdict))
                      : "unknown");
}

int32_t sealpoint_id_random(sealpoint_id* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(out, "out"));
    const auto id = Id128::Random();
    if (id.ok()) *out = Out(*id);
    return id.status();
  });
}

void sealpoint_id_to_text(const sealpoint_id* id, char* out) {
  if (id == nullptr || out == nullptr) return;
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const std::uint8_t byte : id->bytes) {
    *out++ = kDigits[byte / 16];
    *out++ = kDigits[byte % 16];
  }
}

int32_t sealpoint_id_from_text(sealpoint_string text, sealpoint_id* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(out, "out"));
    std::string_view digits;
    SEALPOINT_C_TRY(Take(text, "text", digits));
    const auto id = Id128::FromHex(digits);
    if (id.ok()) *out = Out(*id);
    return id.status();
  });
}

sealpoint_bytes sealpoint_buffer_bytes(const sealpoint_buffer* buffer) {
  return buffer == nullptr ? sealpoint_bytes{nullptr, 0} : Out(sealpoint::ByteSpan(buffer->bytes));
}

void sealpoint_buffer_free(sealpoint_buffer* buffer) { delete buffer; }

}  // extern "C"
