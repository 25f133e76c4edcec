// SPDX-License-Identifier: Apache-2.0
//
// Whether this program runs under a sanitizer that watches memory: it keeps what is freed, and has
// its own ways to allocate.
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_SANITIZER_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_SANITIZER_H_

// g++ says it with macros; clang before 21 with __has_feature alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEALPOINT_TEST_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SEALPOINT_TEST_HAS_SANITIZER 1
#endif
#endif
#ifndef SEALPOINT_TEST_HAS_SANITIZER
#define SEALPOINT_TEST_HAS_SANITIZER 0
#endif

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_SANITIZER_H_
