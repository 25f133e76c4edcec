// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_BOUNDARY_H_
#define SEALPOINT_LIB_C_BOUNDARY_H_

// The boundary between C and C++: building blocks of every function of sealpoint.h
// and sealpoint_ranks.h.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint.h"
#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint_ranks.h"

struct sealpoint_error {
  explicit sealpoint_error(sealpoint::Status of) : status(std::move(of)), text(status.ToString()) {}
  sealpoint::Status status;
  std::string text;
};

struct sealpoint_buffer {
  sealpoint::Bytes bytes;
};

namespace sealpoint::c_api {

#define SEALPOINT_C_TRY(expression) \
  if (::sealpoint::Status status_of_try = (expression); !status_of_try.ok()) return status_of_try

// Returns the code of a status and its error object. Without memory it returns a static object.
std::int32_t Report(const Status& status, sealpoint_error** error) noexcept;
std::int32_t ReportNoMemory(sealpoint_error** error) noexcept;
std::int32_t ReportException(const char* what, sealpoint_error** error) noexcept;

// Runs body(), which returns a Status, as the whole of a function of the C API.
template <typename Body>
std::int32_t Guarded(sealpoint_error** error, const Body& body) noexcept {
  try {
    return Report(body(), error);
  } catch (const std::bad_alloc&) {
    return ReportNoMemory(error);
  } catch (const std::exception& exception) {
    return ReportException(exception.what(), error);
  } catch (...) {
    return ReportException("unknown type", error);
  }
}

inline Status Null(std::string_view what) {
  return {Code::kInvalidArgument, std::string(what) + " is NULL"};
}

// The same for a function with an output: body() returns a Result<std::unique_ptr<Object>>.
template <typename Object, typename Body>
std::int32_t Make(Object** out, sealpoint_error** error, const Body& body) noexcept {
  if (out != nullptr) *out = nullptr;
  return Guarded(error, [&]() -> Status {
    if (out == nullptr) return Null("out");
    Result<std::unique_ptr<Object>> made = body();
    if (!made.ok()) return made.error();
    *out = std::move(made).value().release();
    return {};
  });
}

// The same for a collective call. Without `out` the rank takes part all the same, so that no other
// rank waits for it: body() gets what this rank has failed with.
template <typename Object, typename Body>
std::int32_t MakeTogether(Object** out, sealpoint_error** error, const Body& body) noexcept {
  if (out != nullptr) *out = nullptr;
  return Guarded(error, [&]() -> Status {
    const Status checked = out == nullptr ? Null("out") : Status();
    Result<std::unique_ptr<Object>> made = body(checked);
    if (!made.ok()) return made.error();
    if (out != nullptr) *out = std::move(made).value().release();
    return checked;
  });
}

template <typename T>
Status NotNull(const T* object, std::string_view what) {
  return object == nullptr ? Null(what) : Status();
}

// Sizes of structs that are taken for mistakes: memory that was never set is not read.
inline constexpr std::uint32_t kStructSizeMax = 4096;
// The size that a struct had in the first version of the ABI. One that grows gets a specialisation.
template <typename T>
inline constexpr std::uint32_t kFirstSize = sizeof(T);

Status CheckStructSize(std::uint32_t size, std::uint32_t first_size);
Status CheckUnknownTail(const void* tail, std::size_t size);

// A struct that the caller filled in, in this version's size; defaults if `given` is NULL.
template <typename T>
Status Take(const T* given, T& taken) {
  std::memset(&taken, 0, sizeof(T));
  if (given == nullptr) return {};
  SEALPOINT_C_TRY(CheckStructSize(given->struct_size, kFirstSize<T>));
  std::memcpy(&taken, given, std::min<std::size_t>(given->struct_size, sizeof(T)));
  if (given->struct_size > sizeof(T)) {
    SEALPOINT_C_TRY(CheckUnknownTail(reinterpret_cast<const char*>(given) + sizeof(T),
                                     given->struct_size - sizeof(T)));
  }
  if constexpr (requires { taken.reserved; }) {
    SEALPOINT_C_TRY(CheckUnknownTail(&taken.reserved, sizeof(taken.reserved)));
  }
  return {};
}

// Copies `filled` to the caller's struct up to its struct_size. Does nothing if `out` is NULL.
template <typename T>
Status Fill(T filled, T* out) {
  if (out == nullptr) return {};
  SEALPOINT_C_TRY(CheckStructSize(out->struct_size, kFirstSize<T>));
  filled.struct_size = out->struct_size;
  std::memcpy(out, &filled, std::min<std::size_t>(filled.struct_size, sizeof(T)));
  if (filled.struct_size > sizeof(T)) {
    std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, filled.struct_size - sizeof(T));
  }
  return {};
}
// The same where a struct is needed; checked before the work is done.
template <typename T>
Status CheckOut(const T* out) {
  return out == nullptr ? Null("out") : CheckStructSize(out->struct_size, kFirstSize<T>);
}

Status Take(sealpoint_string given, std::string_view what, std::string_view& taken);
Status Take(sealpoint_string given, std::string_view what, std::string& taken);
Status Take(sealpoint_bytes given, std::string_view what, ByteSpan& taken);
// `count` elements at `data`.
Status CheckArray(const void* data, std::uint64_t count, std::string_view what);
// A value of an enumeration, at most `greatest`.
Status CheckEnum(std::uint32_t value, std::uint32_t greatest, std::string_view what);
Status CheckIndex(std::uint64_t index, std::uint64_t count, std::string_view what);

// 0 is kThreadsAuto in C, too.
inline int ThreadsOf(std::uint32_t threads) {
  constexpr std::uint32_t kMax = 1U << 30;  // more than any limit, which the callee knows
  return static_cast<int>(std::min(threads, kMax));
}

inline sealpoint_string Out(std::string_view text) { return {text.data(), text.size()}; }
inline sealpoint_bytes Out(ByteSpan bytes) { return {bytes.data(), bytes.size()}; }
sealpoint_id Out(const Id128& id);
template <std::derived_from<Id128> T = Id128>
T In(const sealpoint_id& id) {
  T in;
  std::memcpy(in.bytes.data(), id.bytes, sizeof id.bytes);
  return in;
}

// A callback that calls the program's callback. If that requests cancellation, it throws,
// because C++ callbacks cancel by throwing.
PhaseCallback ProgressOf(sealpoint_progress_function function, void* user);

// A value that is made at first use, on any thread.
template <typename T>
class Lazy {
 public:
  template <typename MakeIt>
  const T& Get(const MakeIt& make) const {
    std::call_once(once_, [&] { value_ = make(); });
    return value_;
  }

 private:
  mutable std::once_flag once_;
  mutable T value_{};
};

}  // namespace sealpoint::c_api

#endif  // SEALPOINT_LIB_C_BOUNDARY_H_
