// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_EXPORT_H_
#define SEALPOINT_EXPORT_H_

// Marks what the shared library exports; everything else is hidden. SEALPOINT_SHARED is defined by
// the build of, and by every consumer of, the shared variant of the library.
#if defined(SEALPOINT_SHARED)
#define SEALPOINT_EXPORT [[gnu::visibility("default")]]
#else
#define SEALPOINT_EXPORT
#endif

#endif  // SEALPOINT_EXPORT_H_
