// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/delivery_set.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/transfer/host_delivery.h"

namespace sealpoint::internal::transfer {
namespace {

Status CheckDigests(const DeliveryContext& context) {
  for (const PlanStream& stream : context.plan.streams) {
    const Status offered = context.devices->CheckKernels(stream.device);
    if (offered.ok()) continue;
    return context.plan.AtItem(
        stream.name,
        MakeError(Code::kUnsupported, "digests cannot be verified in memory of device ",
                  stream.device, ": ", offered.message()));
  }
  return {};
}

// Isolated destinations get verified bytes only; a device writes before it verifies.
bool MayReadDirectly(const DeliveryOptions& options) {
  return options.reads_directly && !options.isolates;
}

// Whether devices can read files by themselves. They must then be able to verify, since the host
// does not see those bytes. Precondition: queues were made.
bool CanReadDirectly(const DeliveryContext& context) {
  return context.devices->CheckFiles().ok() && CheckDigests(context).ok();
}

}  // namespace

Result<std::unique_ptr<DeliverySet>> DeliverySet::Open(const DeliveryContext& context,
                                                       const DeliveryOptions& options) {
  auto set = std::make_unique<DeliverySet>();
  if (!context.plan.is_host_only()) {
    SEALPOINT_RETURN_IF_ERROR(set->OpenQueued(context, options));
    return set;
  }
  const int threads = AffordableThreads(context.plan, options.threads, options.memory_budget_bytes);
  for (int i = 0; i < threads; ++i) {
    set->deliveries_.push_back(std::make_unique<HostDelivery>(context.plan, options.isolates));
  }
  return set;
}

Status DeliverySet::OpenQueued(const DeliveryContext& context, const DeliveryOptions& options) {
  const DeviceStaging staging =
      DeviceStaging::Divide(context.plan, options.threads, options.memory_budget_bytes,
                            options.verifies_on_device || MayReadDirectly(options));
  std::vector<std::unique_ptr<StagedCopies>> copies;
  for (int i = 0; i < staging.threads; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(auto queues, StagedCopies::Open(context.plan, context.devices));
    copies.push_back(std::move(queues));
  }
  if (options.verifies_on_device) SEALPOINT_RETURN_IF_ERROR(CheckDigests(context));
  if (MayReadDirectly(options) && CanReadDirectly(context)) {
    direct_files_.emplace(context.open_direct, context.devices);
  }
  context.pool.PinWith(context.devices);
  // All at once: two reads that each hold a part of what they need would wait for each other.
  const std::uint64_t size = staging.thread_bytes();
  SEALPOINT_ASSIGN_OR_RETURN(memory_, context.pool.AcquireScratch(copies.size() * size));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const DeviceDelivery::Setup setup{.plan = context.plan,
                                      .staging = staging,
                                      .memory = memory_.bytes().subspan(i * size, size),
                                      .isolates = options.isolates,
                                      .verifies = options.verifies_on_device};
    if (direct_files_) {
      deliveries_.push_back(
          std::make_unique<DirectDelivery>(setup, std::move(copies[i]), *direct_files_));
    } else {
      deliveries_.push_back(std::make_unique<DeviceDelivery>(setup, std::move(copies[i])));
    }
  }
  return {};
}

Result<DeviceBytes> DeliverySet::Complete() {
  DeviceBytes bytes;
  for (const auto& delivery : deliveries_) {
    SEALPOINT_RETURN_IF_ERROR(delivery->Complete());
    bytes.verified += delivery->device_bytes().verified;
    bytes.read_directly += delivery->device_bytes().read_directly;
  }
  return bytes;
}

Result<std::unique_ptr<Delivery>> OpenReceived(const DeliveryContext& context,
                                               std::uint64_t buffer_max_bytes) {
  if (context.plan.is_host_only()) {
    return std::unique_ptr<Delivery>(
        std::make_unique<HostDelivery>(context.plan, /*isolates=*/false));
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto copies, StagedCopies::Open(context.plan, context.devices));
  context.pool.PinWith(context.devices);
  return std::unique_ptr<Delivery>(std::make_unique<StagedDelivery>(
      context.plan, std::move(copies), context.pool, buffer_max_bytes));
}

int AffordableThreads(const DeliveryPlan& plan, int threads, std::uint64_t memory_budget_bytes) {
  const std::uint64_t need = plan.range_memory_max + 2 * plan.decoded_size_max;
  if (need == 0) return threads;
  const std::uint64_t affordable = std::max<std::uint64_t>(1, memory_budget_bytes / need);
  return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), affordable));
}

}  // namespace sealpoint::internal::transfer
