// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_EXPORT_H_
#define SEALPOINT_EXPORT_H_

// Every public header includes this one, so that an older standard is one clear error.
#if __cplusplus < 202002L
#error "Sealpoint needs C++20: compile with -std=c++20 or later"
// No such header exists: the compiler stops here, and reports nothing that only follows from it.
#include <sealpoint_needs_cxx20>
#endif

// Marks what the shared library exports; everything else is hidden. SEALPOINT_SHARED is defined by
// the build of, and by every consumer of, the shared variant of the library.
#if defined(SEALPOINT_SHARED)
#define SEALPOINT_EXPORT [[gnu::visibility("default")]]
#else
#define SEALPOINT_EXPORT
#endif

#endif  // SEALPOINT_EXPORT_H_
