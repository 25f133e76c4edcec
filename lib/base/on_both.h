// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_ON_BOTH_H_
#define SEALPOINT_LIB_BASE_ON_BOTH_H_

// Declares a function that the host and devices run.
#if defined(__CUDACC__)
#define SEALPOINT_ON_BOTH __host__ __device__ inline
#else
#define SEALPOINT_ON_BOTH inline
#endif

#endif  // SEALPOINT_LIB_BASE_ON_BOTH_H_
