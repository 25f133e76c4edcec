// SPDX-License-Identifier: Apache-2.0
// Our declarations of the driver API are those of the toolkit's header: types when this file is
// compiled, values when it is run.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "lib/device/cuda_driver.h"
#include "lib/device/cufile_driver.h"
#if __has_include(<cufile.h>)
#include <cufile.h>
#endif

namespace sealpoint::testing {
namespace {

namespace cuda = internal::cuda;

// What a type of cuda.h is called in our declarations. Enumerations are passed as int.
template <typename T>
struct Ours {
  using type_name = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <>
struct Ours<CUctx_st> {
  using type_name = cuda::Context;
};
template <>
struct Ours<CUevent_st> {
  using type_name = cuda::Event;
};
template <>
struct Ours<CUfunc_st> {
  using type_name = cuda::Function;
};
template <>
struct Ours<CUmod_st> {
  using type_name = cuda::Module;
};
template <>
struct Ours<CUstream_st> {
  using type_name = cuda::Stream;
};
template <>
struct Ours<CUDA_MEMCPY2D> {
  using type_name = cuda::Copy2D;
};
template <typename T>
struct Ours<const T> {
  using type_name = const typename Ours<T>::type_name;
};
template <typename T>
struct Ours<T*> {
  using type_name = typename Ours<T>::type_name*;
};
template <typename R, typename... A>
struct Ours<R (*)(A...)> {
  using type_name = typename Ours<R>::type_name (*)(typename Ours<A>::type_name...);
};

#define SEALPOINT_COMPARE(member, symbol)                                                   \
  static_assert(                                                                            \
      std::is_same_v<Ours<decltype(&::symbol)>::type_name, decltype(cuda::Driver::member)>, \
      #symbol);
SEALPOINT_CUDA_FUNCTIONS(SEALPOINT_COMPARE)
#undef SEALPOINT_COMPARE

// Enumerations are as large as int.
static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUmemorytype) == sizeof(int));
static_assert(sizeof(CUstreamCaptureMode) == sizeof(int));
static_assert(sizeof(CUstreamCaptureStatus) == sizeof(int));
static_assert(sizeof(CUdevice_attribute) == sizeof(int));

static_assert(std::is_same_v<cuda::Address, CUdeviceptr>);
#define SEALPOINT_SAME_PLACE(ours, theirs)                                         \
  static_assert(offsetof(cuda::Copy2D, ours) == offsetof(CUDA_MEMCPY2D, theirs) && \
                    sizeof(cuda::Copy2D::ours) == sizeof(CUDA_MEMCPY2D::theirs),   \
                #theirs);
SEALPOINT_SAME_PLACE(source_x_bytes, srcXInBytes)
SEALPOINT_SAME_PLACE(source_y, srcY)
SEALPOINT_SAME_PLACE(source_type, srcMemoryType)
SEALPOINT_SAME_PLACE(source_host, srcHost)
SEALPOINT_SAME_PLACE(source_device, srcDevice)
SEALPOINT_SAME_PLACE(source_array, srcArray)
SEALPOINT_SAME_PLACE(source_pitch, srcPitch)
SEALPOINT_SAME_PLACE(target_x_bytes, dstXInBytes)
SEALPOINT_SAME_PLACE(target_y, dstY)
SEALPOINT_SAME_PLACE(target_type, dstMemoryType)
SEALPOINT_SAME_PLACE(target_host, dstHost)
SEALPOINT_SAME_PLACE(target_device, dstDevice)
SEALPOINT_SAME_PLACE(target_array, dstArray)
SEALPOINT_SAME_PLACE(target_pitch, dstPitch)
SEALPOINT_SAME_PLACE(width_bytes, WidthInBytes)
SEALPOINT_SAME_PLACE(height, Height)
#undef SEALPOINT_SAME_PLACE
static_assert(sizeof(cuda::Copy2D) == sizeof(CUDA_MEMCPY2D));

// cuFile's header is a part of the toolkit that may be missing.
#ifdef CUFILEOP_BASE_ERR
namespace cufile = internal::cufile;

template <>
struct Ours<CUfileError_t> {
  using type_name = cufile::Outcome;
};
template <>
struct Ours<CUfileDescr_t> {
  using type_name = cufile::Descriptor;
};
#define SEALPOINT_COMPARE(member, symbol)                                                     \
  static_assert(                                                                              \
      std::is_same_v<Ours<decltype(&::symbol)>::type_name, decltype(cufile::Driver::member)>, \
      #symbol);
SEALPOINT_CUFILE_FUNCTIONS(SEALPOINT_COMPARE)
#undef SEALPOINT_COMPARE
static_assert(sizeof(CUfileError_t) == sizeof(cufile::Outcome) &&
              offsetof(CUfileError_t, err) == offsetof(cufile::Outcome, error) &&
              offsetof(CUfileError_t, cu_err) == offsetof(cufile::Outcome, cuda_error));
static_assert(sizeof(CUfileDescr_t) == sizeof(cufile::Descriptor) &&
              offsetof(CUfileDescr_t, type) == offsetof(cufile::Descriptor, type) &&
              offsetof(CUfileDescr_t, handle.fd) == offsetof(cufile::Descriptor, descriptor) &&
              offsetof(CUfileDescr_t, fs_ops) == offsetof(cufile::Descriptor, operations));

TEST(CufilePrototypes, ConstantsAreThoseOfTheToolkit) {
  EXPECT_EQ(cufile::kCudaDriverError, CU_FILE_CUDA_DRIVER_ERROR);
  EXPECT_EQ(cufile::kDriverAlreadyOpen, CU_FILE_DRIVER_ALREADY_OPEN);
  EXPECT_EQ(cufile::kIoError, CU_FILE_IO_ERROR);
  EXPECT_EQ(cufile::kTypeDescriptor, CU_FILE_HANDLE_TYPE_OPAQUE_FD);
}
#else
TEST(CufilePrototypes, ConstantsAreThoseOfTheToolkit) { GTEST_SKIP() << "no cufile.h"; }
#endif

TEST(CudaPrototypes, ConstantsAreThoseOfTheToolkit) {
  EXPECT_EQ(cuda::kSuccess, CUDA_SUCCESS);
  EXPECT_EQ(cuda::kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda::kMemoryTypeHost, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(cuda::kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(cuda::kAttributeMaxPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  EXPECT_EQ(cuda::kCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuda::kCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuda::kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
  EXPECT_EQ(cuda::kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(cuda::kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
}

}  // namespace
}  // namespace sealpoint::testing
