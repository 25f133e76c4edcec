// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_INTERNAL_ACCESS_H_
#define SEALPOINT_LIB_BASE_INTERNAL_ACCESS_H_

#include <memory>

namespace sealpoint {

class BlobSummary;
class Declaration;
class Engine;
class ReadPlan;

namespace internal {
class DeclarationSummary;
struct DecodedSummary;
struct EngineParts;
struct ReadPlanData;
}  // namespace internal

// What the library's own modules see of public classes, which name no internal type themselves.
// Each function is defined in the module that owns the class.
class InternalAccess {
 public:
  static internal::EngineParts& PartsOf(const Engine& engine);
  static const internal::DeclarationSummary& SummaryOf(const Declaration& declaration);
  static BlobSummary MakeSummary(internal::DecodedSummary decoded);
  // Null for an empty summary (default-constructed).
  static const internal::DecodedSummary* DecodedOf(const BlobSummary& summary);
  static const internal::ReadPlanData& DataOf(const ReadPlan& plan);
  static ReadPlan MakePlan(internal::ReadPlanData data);
};

}  // namespace sealpoint

#endif  // SEALPOINT_LIB_BASE_INTERNAL_ACCESS_H_
