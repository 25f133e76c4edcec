// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device/fake_cuda_driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "lib/base/macros.h"
#include "lib/device/digest_job.h"
#include "lib/device/fingerprint_job.h"

namespace sealpoint::testing {

namespace device = internal::device;

namespace cuda = internal::cuda;

namespace {

struct FakeContext {
  int device = 0;
};

struct FakeStream {
  FakeContext* context = nullptr;
  std::deque<std::function<void()>> waiting{};
  std::uint64_t queued = 0;
  std::uint64_t done = 0;
  bool capturing = false;

  void Queue(std::function<void()> operation) {
    waiting.push_back(std::move(operation));
    ++queued;
  }
  void RunTo(std::uint64_t position);
};

struct FakeEvent {
  FakeContext* context = nullptr;
  FakeStream* stream = nullptr;  // null: never recorded, so complete
  std::uint64_t position = 0;
};

std::map<std::string, FakeKernel>& Kernels() {
  static std::map<std::string, FakeKernel> kernels;
  return kernels;
}

// Allocated memory: the host may touch it only while the device works.
class FakeMemory {
 public:
  cuda::Address Allocate(std::size_t size) {
    const int access = PROT_READ | PROT_WRITE;
    void* const begin = mmap(nullptr, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SEALPOINT_CHECK(begin != MAP_FAILED);
    // No numbers; only at the beginning, because each page in use makes Protect slower.
    std::memset(begin, 0xFF, std::min<std::size_t>(size, 128 << 10));
    const auto address = static_cast<cuda::Address>(reinterpret_cast<std::uintptr_t>(begin));
    sizes_[address] = size;
    Protect();
    return address;
  }
  bool Free(cuda::Address address) {
    const auto found = sizes_.find(address);
    if (found == sizes_.end()) return false;
    munmap(Pointer(address), found->second);
    sizes_.erase(found);
    return true;
  }
  void BeginWork() {
    if (works_++ == 0) Protect();
  }
  void EndWork() {
    if (--works_ == 0) Protect();
  }
  std::uint64_t size_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [address, size] : sizes_) sum += size;
    return sum;
  }

 private:
  static void* Pointer(cuda::Address address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  void Protect() const {
    const int access = works_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    for (const auto& [address, size] : sizes_) {
      SEALPOINT_CHECK(mprotect(Pointer(address), size, access) == 0);
    }
  }

  std::map<cuda::Address, std::size_t> sizes_;
  int works_ = 0;  // streams wait for streams
};

struct FakeFunction {
  FakeKernel kernel = nullptr;
};

struct ThreadState {
  std::vector<FakeContext*> contexts{};
  int capture_mode = 0;  // global, as CUDA begins
};

struct World {
  std::recursive_mutex mutex;
  int device_count = 1;
  bool initialised = false;
  std::map<int, std::unique_ptr<FakeContext>> primary;
  std::vector<std::unique_ptr<FakeContext>> foreign;
  std::map<FakeContext*, std::unique_ptr<FakeStream>> default_streams;
  std::map<FakeStream*, std::unique_ptr<FakeStream>> streams;
  std::map<FakeEvent*, std::unique_ptr<FakeEvent>> events;
  std::vector<std::unique_ptr<FakeFunction>> functions;
  std::map<void*, std::size_t> registered;
  FakeMemory memory;
  std::map<std::thread::id, ThreadState> threads;
  std::map<std::string, std::uint64_t> calls;
  struct Failure {
    int result = 0;
    std::uint64_t nth = 0;
  };
  std::map<std::string, Failure> failures;

  ThreadState& Thread() { return threads[std::this_thread::get_id()]; }
  FakeContext* Current() {
    const auto& contexts = Thread().contexts;
    return contexts.empty() ? nullptr : contexts.back();
  }
  FakeContext* Primary(int device) {
    auto& context = primary[device];
    if (context == nullptr) context = std::make_unique<FakeContext>(FakeContext{device});
    return context.get();
  }
  // Null if the stream is not one of the current context.
  FakeStream* Find(cuda::Stream* handle) {
    FakeContext* const context = Current();
    if (context == nullptr) return nullptr;
    if (handle == nullptr) {
      auto& stream = default_streams[context];
      if (stream == nullptr) stream = std::make_unique<FakeStream>(FakeStream{.context = context});
      return stream.get();
    }
    auto* const stream = reinterpret_cast<FakeStream*>(handle);
    return streams.contains(stream) && stream->context == context ? stream : nullptr;
  }
  FakeEvent* Find(cuda::Event* handle) {
    auto* const event = reinterpret_cast<FakeEvent*>(handle);
    return events.contains(event) ? event : nullptr;
  }
};

World* world = nullptr;

void FakeStream::RunTo(std::uint64_t position) {
  if (done >= position) return;
  world->memory.BeginWork();
  while (done < position) {
    const std::function<void()> operation = std::move(waiting.front());
    waiting.pop_front();
    ++done;
    operation();
  }
  world->memory.EndWork();
}

// Counts the call; what it is to fail with, else 0.
int Enter(const char* function) {
  ++world->calls[function];
  auto& failure = world->failures[function];
  if (failure.nth == 0) return cuda::kSuccess;
  if (failure.nth > 1) {
    --failure.nth;
    return cuda::kSuccess;
  }
  return failure.result;
}

#define SEALPOINT_ENTER(function)           \
  const std::lock_guard lock(world->mutex); \
  if (const int injected = Enter(#function); injected != cuda::kSuccess) return injected

#define SEALPOINT_ENTER_WITH_CONTEXT(function) \
  SEALPOINT_ENTER(function);                   \
  if (world->Current() == nullptr) return kCudaInvalidContext

int Init(unsigned flags) {
  SEALPOINT_ENTER(init);
  if (flags != 0) return kCudaInvalidValue;
  if (world->device_count == 0) return kCudaNoDevice;
  world->initialised = true;
  return cuda::kSuccess;
}

int GetErrorName(int error, const char** name) {
  static const std::map<int, const char*> names = {
      {kCudaInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kCudaOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kCudaStubLibrary, "CUDA_ERROR_STUB_LIBRARY"},
      {kCudaInsufficientDriver, "CUDA_ERROR_INSUFFICIENT_DRIVER"},
      {kCudaNoDevice, "CUDA_ERROR_NO_DEVICE"},
      {kCudaInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kCudaInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {kCudaNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kCudaIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(error);
  if (found == names.end()) return kCudaInvalidValue;
  *name = found->second;
  return cuda::kSuccess;
}

int DeviceGetCount(int* count) {
  SEALPOINT_ENTER(device_get_count);
  *count = world->device_count;
  return cuda::kSuccess;
}

int DeviceGet(int* device, int ordinal) {
  SEALPOINT_ENTER(device_get);
  if (ordinal < 0 || ordinal >= world->device_count) return kCudaInvalidValue;
  *device = ordinal;
  return cuda::kSuccess;
}

int DeviceGetAttribute(int* value, int attribute, int /*device*/) {
  SEALPOINT_ENTER(device_get_attribute);
  if (attribute != cuda::kAttributeMaxPitch) return kCudaInvalidValue;
  *value = 1 << 20;
  return cuda::kSuccess;
}

int PrimaryContextRetain(cuda::Context** context, int device) {
  SEALPOINT_ENTER(primary_context_retain);
  *context = reinterpret_cast<cuda::Context*>(world->Primary(device));
  return cuda::kSuccess;
}

int ContextPush(cuda::Context* context) {
  SEALPOINT_ENTER(context_push);
  world->Thread().contexts.push_back(reinterpret_cast<FakeContext*>(context));
  return cuda::kSuccess;
}

int ContextPop(cuda::Context** context) {
  SEALPOINT_ENTER(context_pop);
  auto& contexts = world->Thread().contexts;
  if (contexts.empty()) return kCudaInvalidContext;
  *context = reinterpret_cast<cuda::Context*>(contexts.back());
  contexts.pop_back();
  return cuda::kSuccess;
}

int ExchangeCaptureMode(int* mode) {
  SEALPOINT_ENTER(exchange_capture_mode);
  std::swap(*mode, world->Thread().capture_mode);
  return cuda::kSuccess;
}

int StreamCreate(cuda::Stream** stream, unsigned flags) {
  SEALPOINT_ENTER_WITH_CONTEXT(stream_create);
  if (flags != cuda::kStreamNonBlocking) return kCudaInvalidValue;
  auto made = std::make_unique<FakeStream>(FakeStream{.context = world->Current()});
  *stream = reinterpret_cast<cuda::Stream*>(made.get());
  world->streams[made.get()] = std::move(made);
  return cuda::kSuccess;
}

int StreamDestroy(cuda::Stream* handle) {
  SEALPOINT_ENTER_WITH_CONTEXT(stream_destroy);
  FakeStream* const stream = world->Find(handle);
  if (stream == nullptr || handle == nullptr) return kCudaInvalidHandle;
  world->streams.erase(stream);  // what waits may run later or never: here never
  return cuda::kSuccess;
}

int StreamSynchronize(cuda::Stream* handle) {
  SEALPOINT_ENTER_WITH_CONTEXT(stream_synchronize);
  FakeStream* const stream = world->Find(handle);
  if (stream == nullptr) return kCudaInvalidHandle;
  stream->RunTo(stream->queued);
  return cuda::kSuccess;
}

int StreamWaitEvent(cuda::Stream* handle, cuda::Event* event_handle, unsigned flags) {
  SEALPOINT_ENTER_WITH_CONTEXT(stream_wait_event);
  FakeStream* const stream = world->Find(handle);
  const FakeEvent* const event = world->Find(event_handle);
  if (stream == nullptr || event == nullptr || flags != 0) return kCudaInvalidHandle;
  // The state of now, whatever is recorded later.
  if (event->stream != nullptr) {
    stream->Queue([at = event->stream, position = event->position] { at->RunTo(position); });
  }
  return cuda::kSuccess;
}

int StreamIsCapturing(cuda::Stream* handle, int* status) {
  SEALPOINT_ENTER_WITH_CONTEXT(stream_is_capturing);
  const FakeStream* const stream = world->Find(handle);
  if (stream == nullptr) return kCudaInvalidHandle;
  *status = stream->capturing ? 1 : cuda::kCaptureStatusNone;
  return cuda::kSuccess;
}

int EventCreate(cuda::Event** event, unsigned flags) {
  SEALPOINT_ENTER_WITH_CONTEXT(event_create);
  if (flags != (cuda::kEventDisableTiming | cuda::kEventBlockingSync)) return kCudaInvalidValue;
  auto made = std::make_unique<FakeEvent>(FakeEvent{.context = world->Current()});
  *event = reinterpret_cast<cuda::Event*>(made.get());
  world->events[made.get()] = std::move(made);
  return cuda::kSuccess;
}

int EventDestroy(cuda::Event* event) {
  SEALPOINT_ENTER_WITH_CONTEXT(event_destroy);
  return world->events.erase(reinterpret_cast<FakeEvent*>(event)) != 0 ? cuda::kSuccess
                                                                       : kCudaInvalidHandle;
}

int EventRecord(cuda::Event* handle, cuda::Stream* stream_handle) {
  SEALPOINT_ENTER_WITH_CONTEXT(event_record);
  FakeEvent* const event = world->Find(handle);
  FakeStream* const stream = world->Find(stream_handle);
  if (event == nullptr || stream == nullptr || event->context != stream->context) {
    return kCudaInvalidHandle;
  }
  event->stream = stream;
  event->position = stream->queued;
  return cuda::kSuccess;
}

int EventQuery(cuda::Event* handle) {
  SEALPOINT_ENTER_WITH_CONTEXT(event_query);
  const FakeEvent* const event = world->Find(handle);
  if (event == nullptr) return kCudaInvalidHandle;
  if (event->stream == nullptr || event->stream->done >= event->position) return cuda::kSuccess;
  event->stream->RunTo(event->stream->done + 1);
  return cuda::kNotReady;
}

int EventSynchronize(cuda::Event* handle) {
  SEALPOINT_ENTER_WITH_CONTEXT(event_synchronize);
  const FakeEvent* const event = world->Find(handle);
  if (event == nullptr) return kCudaInvalidHandle;
  if (event->stream != nullptr) event->stream->RunTo(event->position);
  return cuda::kSuccess;
}

unsigned char* PointerOf(cuda::Address address) {
  return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
}

// The first page is nobody's.
bool IsMemory(cuda::Address address) { return address >= 4096; }

int Queue(cuda::Stream* handle, std::function<void()> operation) {
  FakeStream* const stream = world->Find(handle);
  if (stream == nullptr) return kCudaInvalidHandle;
  stream->Queue(std::move(operation));
  return cuda::kSuccess;
}

int CopyToHost(void* to, cuda::Address from, std::size_t size, cuda::Stream* stream) {
  SEALPOINT_ENTER_WITH_CONTEXT(copy_to_host);
  if (!IsMemory(from)) return kCudaInvalidValue;
  return Queue(stream, [=] { std::memcpy(to, PointerOf(from), size); });
}

int CopyToDevice(cuda::Address to, const void* from, std::size_t size, cuda::Stream* stream) {
  SEALPOINT_ENTER_WITH_CONTEXT(copy_to_device);
  if (!IsMemory(to)) return kCudaInvalidValue;
  return Queue(stream, [=] { std::memcpy(PointerOf(to), from, size); });
}

int Copy2D(const cuda::Copy2D* given, cuda::Stream* stream) {
  SEALPOINT_ENTER_WITH_CONTEXT(copy_2d);
  const cuda::Copy2D c = *given;
  const bool to_host =
      c.source_type == cuda::kMemoryTypeDevice && c.target_type == cuda::kMemoryTypeHost;
  const bool to_device =
      c.source_type == cuda::kMemoryTypeHost && c.target_type == cuda::kMemoryTypeDevice;
  constexpr std::size_t kPitchMax = 1 << 20;
  if (!to_host && !to_device) return kCudaInvalidValue;
  if (c.source_pitch < c.width_bytes || c.target_pitch < c.width_bytes) return kCudaInvalidValue;
  if (c.source_pitch > kPitchMax || c.target_pitch > kPitchMax) return kCudaInvalidValue;
  return Queue(stream, [=] {
    const auto* from =
        to_host ? PointerOf(c.source_device) : static_cast<const unsigned char*>(c.source_host);
    auto* to = to_host ? static_cast<unsigned char*>(c.target_host) : PointerOf(c.target_device);
    for (std::size_t row = 0; row < c.height; ++row) {
      std::memcpy(to + row * c.target_pitch, from + row * c.source_pitch, c.width_bytes);
    }
  });
}

int HostRegister(void* host, std::size_t size, unsigned flags) {
  SEALPOINT_ENTER_WITH_CONTEXT(host_register);
  if (flags != cuda::kHostRegisterPortable) return kCudaInvalidValue;
  return world->registered.emplace(host, size).second ? cuda::kSuccess : kCudaInvalidValue;
}

int HostUnregister(void* host) {
  SEALPOINT_ENTER_WITH_CONTEXT(host_unregister);
  return world->registered.erase(host) != 0 ? cuda::kSuccess : kCudaInvalidValue;
}

int MemoryAllocate(cuda::Address* address, std::size_t size) {
  SEALPOINT_ENTER_WITH_CONTEXT(memory_allocate);
  if (size == 0) return kCudaInvalidValue;
  *address = world->memory.Allocate(size);
  return cuda::kSuccess;
}

int MemoryFree(cuda::Address address) {
  SEALPOINT_ENTER_WITH_CONTEXT(memory_free);
  return world->memory.Free(address) ? cuda::kSuccess : kCudaInvalidValue;
}

int ModuleLoadData(cuda::Module** module, const void* image) {
  SEALPOINT_ENTER_WITH_CONTEXT(module_load_data);
  if (image == nullptr) return kCudaInvalidValue;
  *module = reinterpret_cast<cuda::Module*>(world);
  return cuda::kSuccess;
}

int ModuleGetFunction(cuda::Function** function, cuda::Module* /*module*/, const char* name) {
  SEALPOINT_ENTER_WITH_CONTEXT(module_get_function);
  const auto found = Kernels().find(name);
  if (found == Kernels().end()) return kCudaNotFound;
  world->functions.push_back(std::make_unique<FakeFunction>(FakeFunction{found->second}));
  *function = reinterpret_cast<cuda::Function*>(world->functions.back().get());
  return cuda::kSuccess;
}

// The kernels of kernels.cu.
template <typename Job, void (*kRun)(const Job&, std::uint64_t), auto kCount>
std::function<void()> KernelOf(void** parameters, std::uint64_t thread_count) {
  const Job job = *static_cast<const Job*>(parameters[0]);
  return [=] {
    for (std::uint64_t t = 0; t < std::min<std::uint64_t>(thread_count, kCount(job)); ++t) {
      kRun(job, t);
    }
  };
}
template <void (*kRun)(const device::DigestJob&, std::uint64_t),
          std::uint64_t (*kCount)(const device::DigestJob&)>
constexpr FakeKernel kDigestKernel = KernelOf<device::DigestJob, kRun, kCount>;
template <void (*kRun)(const device::FingerprintJob&, std::uint64_t),
          std::uint64_t device::FingerprintJob::* kCount>
constexpr FakeKernel kFingerprintKernel =
    KernelOf<device::FingerprintJob, kRun,
             [](const device::FingerprintJob& job) { return job.*kCount; }>;
std::uint64_t FoldThreadCount(const device::DigestJob& job) {
  return DigestChunkCount(job) * internal::xxh3::kLanes;
}
[[maybe_unused]] const bool kKernelsAdded =
    AddFakeKernel("sealpoint_sum_blocks",
                  kDigestKernel<device::SumBlock, device::DigestSumCount>) &&
    AddFakeKernel("sealpoint_fold_chunks", kDigestKernel<device::FoldChunk, FoldThreadCount>) &&
    AddFakeKernel("sealpoint_finish_chunks",
                  kDigestKernel<device::FinishChunk, device::DigestChunkCount>) &&
    AddFakeKernel("sealpoint_store_factors",
                  kFingerprintKernel<device::StoreFactor, &device::FingerprintJob::tile_count>) &&
    AddFakeKernel("sealpoint_sum_tiles",
                  kFingerprintKernel<device::SumTiles, &device::FingerprintJob::thread_count>) &&
    AddFakeKernel("sealpoint_fold_sums",
                  KernelOf<device::FingerprintFold, device::FoldSums, device::FoldedCount>);

int LaunchKernel(cuda::Function* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                 cuda::Stream* stream, void** parameters, void** extra) {
  SEALPOINT_ENTER_WITH_CONTEXT(launch_kernel);
  const bool is_flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
  if (!is_flat || grid_x == 0 || block_x == 0 || block_x > 1024) return kCudaInvalidValue;
  if (shared_bytes != 0 || extra != nullptr) return kCudaInvalidValue;
  const FakeKernel kernel = reinterpret_cast<const FakeFunction*>(handle)->kernel;
  return Queue(stream, kernel(parameters, std::uint64_t{grid_x} * block_x));
}

}  // namespace

bool AddFakeKernel(const std::string& name, FakeKernel kernel) {
  return Kernels().emplace(name, kernel).second;
}

FakeCudaDriver::FakeCudaDriver(int device_count)
    : table_{.init = Init,
             .get_error_name = GetErrorName,
             .device_get_count = DeviceGetCount,
             .device_get = DeviceGet,
             .device_get_attribute = DeviceGetAttribute,
             .primary_context_retain = PrimaryContextRetain,
             .context_push = ContextPush,
             .context_pop = ContextPop,
             .exchange_capture_mode = ExchangeCaptureMode,
             .stream_create = StreamCreate,
             .stream_destroy = StreamDestroy,
             .stream_synchronize = StreamSynchronize,
             .stream_wait_event = StreamWaitEvent,
             .stream_is_capturing = StreamIsCapturing,
             .event_create = EventCreate,
             .event_destroy = EventDestroy,
             .event_record = EventRecord,
             .event_query = EventQuery,
             .event_synchronize = EventSynchronize,
             .copy_to_host = CopyToHost,
             .copy_to_device = CopyToDevice,
             .copy_2d = Copy2D,
             .host_register = HostRegister,
             .host_unregister = HostUnregister,
             .memory_allocate = MemoryAllocate,
             .memory_free = MemoryFree,
             .module_load_data = ModuleLoadData,
             .module_get_function = ModuleGetFunction,
             .launch_kernel = LaunchKernel} {
  SEALPOINT_CHECK(world == nullptr);
  world = new World;
  world->device_count = device_count;
}

FakeCudaDriver::~FakeCudaDriver() {
  delete world;
  world = nullptr;
}

void FakeCudaDriver::Fail(const std::string& function, int result, std::uint64_t nth) {
  const std::lock_guard lock(world->mutex);
  world->failures[function] = {result, nth};
}

void FakeCudaDriver::SetCapturing(void* stream, bool capturing) {
  const std::lock_guard lock(world->mutex);
  static_cast<FakeStream*>(stream)->capturing = capturing;
}

void* FakeCudaDriver::MakeStream(int device) {
  const std::lock_guard lock(world->mutex);
  auto made = std::make_unique<FakeStream>(FakeStream{.context = world->Primary(device)});
  FakeStream* const stream = made.get();
  world->streams[stream] = std::move(made);
  return stream;
}

void FakeCudaDriver::QueueWrite(int device, void* stream, unsigned char* to, unsigned char value) {
  const std::lock_guard lock(world->mutex);
  world->Thread().contexts.push_back(world->Primary(device));
  FakeStream* const found = world->Find(static_cast<cuda::Stream*>(stream));
  world->Thread().contexts.pop_back();
  found->Queue([=] { *to = value; });
}

void* FakeCudaDriver::MakeForeignContext() {
  const std::lock_guard lock(world->mutex);
  world->foreign.push_back(std::make_unique<FakeContext>());
  return world->foreign.back().get();
}

void FakeCudaDriver::PushForeign(void* context) {
  const std::lock_guard lock(world->mutex);
  world->Thread().contexts.push_back(static_cast<FakeContext*>(context));
}

void* FakeCudaDriver::PopForeign() {
  const std::lock_guard lock(world->mutex);
  auto& contexts = world->Thread().contexts;
  FakeContext* const popped = contexts.back();
  contexts.pop_back();
  return popped;
}

void* FakeCudaDriver::CurrentOfThisThread() const {
  const std::lock_guard lock(world->mutex);
  return world->Current();
}

std::uint64_t FakeCudaDriver::OpenContexts() const {
  const std::lock_guard lock(world->mutex);
  std::uint64_t sum = 0;
  for (const auto& [id, thread] : world->threads) sum += thread.contexts.size();
  return sum;
}

std::uint64_t FakeCudaDriver::Calls(const std::string& function) const {
  const std::lock_guard lock(world->mutex);
  return world->calls[function];
}

std::uint64_t FakeCudaDriver::LiveStreams() const {
  const std::lock_guard lock(world->mutex);
  return world->streams.size();
}

std::uint64_t FakeCudaDriver::LiveEvents() const {
  const std::lock_guard lock(world->mutex);
  return world->events.size();
}

std::uint64_t FakeCudaDriver::RegisteredBytes() const {
  const std::lock_guard lock(world->mutex);
  std::uint64_t sum = 0;
  for (const auto& [host, size] : world->registered) sum += size;
  return sum;
}

std::uint64_t FakeCudaDriver::AllocatedBytes() const {
  const std::lock_guard lock(world->mutex);
  return world->memory.size_bytes();
}

int FakeCudaDriver::CaptureModeOfThisThread() const {
  const std::lock_guard lock(world->mutex);
  return world->Thread().capture_mode;
}

}  // namespace sealpoint::testing
