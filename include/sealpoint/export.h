// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_EXPORT_H_
#define SEALPOINT_EXPORT_H_

// Every public header includes this header, so that compiling for an older C++ standard causes a
// single clear error.
#if __cplusplus < 202002L
#error "Sealpoint needs C++20: compile with -std=c++20 or later"
// No header has the name below, so the compiler stops here and reports no further errors.
#include <sealpoint_needs_cxx20>
#endif

// Marks symbols that the shared library exports; all other symbols are hidden. SEALPOINT_SHARED is
// defined when the shared library is built or used.
#if defined(SEALPOINT_SHARED)
#define SEALPOINT_EXPORT [[gnu::visibility("default")]]
#else
#define SEALPOINT_EXPORT
#endif

#endif  // SEALPOINT_EXPORT_H_
