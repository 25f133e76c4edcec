// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_EXPORT_H_
#define SEALPOINT_EXPORT_H_

// Every public header includes this one, so that an older standard causes a single clear error.
#if __cplusplus < 202002L
#error "Sealpoint needs C++20: compile with -std=c++20 or later"
// This header does not exist: the compiler stops here and reports no further errors.
#include <sealpoint_needs_cxx20>
#endif

// Marks symbols exported from the shared library; all others are hidden. SEALPOINT_SHARED is
// defined when building or using the shared library.
#if defined(SEALPOINT_SHARED)
#define SEALPOINT_EXPORT [[gnu::visibility("default")]]
#else
#define SEALPOINT_EXPORT
#endif

#endif  // SEALPOINT_EXPORT_H_
