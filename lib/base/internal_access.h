// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_INTERNAL_ACCESS_H_
#define SEALPOINT_LIB_BASE_INTERNAL_ACCESS_H_

#include <memory>

namespace sealpoint {

class BlobSummary;
class Declaration;
struct DeclaredTensor;
class Engine;
class ReadPlan;

namespace internal::load {
struct ReadPlanData;
}  // namespace internal::load

namespace internal::pipeline {
struct EngineParts;
}  // namespace internal::pipeline

namespace internal::writer {
class DeclarationSummary;
struct DecodedSummary;
}  // namespace internal::writer

// Gives the library's own modules access to internals of public classes, which name no internal
// type themselves. Each function is defined in the module that owns the class.
class InternalAccess {
 public:
  static internal::pipeline::EngineParts& PartsOf(const Engine& engine);
  static const internal::writer::DeclarationSummary& SummaryOf(const Declaration& declaration);
  // Declaration::Add for a tensor that passed its checks. Does not compare it with earlier slots.
  static void AddSlot(Declaration& declaration, const DeclaredTensor& held);
  static BlobSummary MakeSummary(internal::writer::DecodedSummary decoded);
  // Null for an empty summary (default-constructed).
  static const internal::writer::DecodedSummary* DecodedOf(const BlobSummary& summary);
  static const internal::load::ReadPlanData& DataOf(const ReadPlan& plan);
  static ReadPlan MakePlan(internal::load::ReadPlanData data);
};

}  // namespace sealpoint

#endif  // SEALPOINT_LIB_BASE_INTERNAL_ACCESS_H_
