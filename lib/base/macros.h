// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_MACROS_H_
#define SEALPOINT_LIB_BASE_MACROS_H_

#include "sealpoint/status.h"

#define SEALPOINT_CONCAT_INNER(a, b) a##b
#define SEALPOINT_CONCAT(a, b) SEALPOINT_CONCAT_INNER(a, b)

// Returns the error of an expression of type Status from the enclosing function.
#define SEALPOINT_RETURN_IF_ERROR(expr)                                            \
  do {                                                                             \
    if (::sealpoint::Status sp_status = (expr); !sp_status.ok()) return sp_status; \
  } while (false)

// `SEALPOINT_ASSIGN_OR_RETURN(auto x, F());` declares x from a Result or returns its error.
#define SEALPOINT_ASSIGN_OR_RETURN(lhs, expr) \
  SEALPOINT_ASSIGN_OR_RETURN_IMPL(SEALPOINT_CONCAT(sp_result_, __LINE__), lhs, expr)
#define SEALPOINT_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                    \
  if (!result.ok()) return std::move(result).error();      \
  lhs = std::move(result).value()

// Programming errors: prints the condition and its place to stderr and aborts. Always on.
#define SEALPOINT_CHECK(condition)                                                        \
  do {                                                                                    \
    if (!(condition)) ::sealpoint::internal::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace sealpoint::internal {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_MACROS_H_
