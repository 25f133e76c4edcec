// SPDX-License-Identifier: Apache-2.0
// Ranks that make different calls, or the same one with different arguments, learn which.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

struct Call {
  std::string kind;
  std::function<Status()> make;
};

// All collective calls of the library, none of which needs anything of the other.
class Calls {
 public:
  explicit Calls(SaveJob& job)
      : job_(job), reader_(CollectiveReader::Open(job.comm, job.path("ckpt")).value()) {
    const SaveTarget target = SaveTarget::Directory(job.path("never"));
    all = {
        {"save", [=, this] { return job_.saver->Save(target, options_, sources_).status(); }},
        {"save in the background",
         [=, this] { return job_.saver->SaveAsync(target, options_, sources_).status(); }},
        {"opening",
         [this] { return CollectiveReader::Open(job_.comm, job_.path("ckpt")).status(); }},
        {"opening of the newest",
         [this] { return OpenNewest(job_.comm, job_.path("series")).status(); }},
        {"load", [this] { return reader_->Load({}, LoadContract::Partial()).status(); }},
        {"plan of a load", [this] { return reader_->Plan({}, LoadContract::Partial()).status(); }},
        {"read of an object", [this] { return reader_->ReadObject("object 0").status(); }},
    };
  }

  std::vector<Call> all;

 private:
  SaveJob& job_;
  const std::unique_ptr<CollectiveReader> reader_;
  const Declaration declaration_;
  const Sources sources_{declaration_};
  const SaveOptions options_{.step = 3, .allow_empty = true};
};

TEST(SameCallTest, CallsThatDoNotMatchEndInOneErrorOnAllRanks) {
  OnJobs(
      [](SaveJob& job) {
        ASSERT_TRUE(job.Save(UsualDeclaration(job.comm)).ok());
        const Calls calls(job);
        const int last = job.size() - 1;
        for (const Call& usual : calls.all) {
          for (const Call& other : calls.all) {
            if (usual.kind == other.kind) continue;
            const Status status = job.is_last() ? other.make() : usual.make();
            EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
            EXPECT_THAT(
                status.message(),
                HasSubstr("the ranks make different calls: rank 0 calls " + usual.kind + " ("));
            EXPECT_THAT(status.message(),
                        HasSubstr(", rank " + std::to_string(last) + " " + other.kind + " ("));
            EXPECT_EQ(status.place().rank, last);
            job.ExpectSameOnAllRanks(status);
          }
        }
        // They are in step, and go on.
        const auto next = job.Save(UsualDeclaration(job.comm), "next");
        EXPECT_TRUE(next.ok()) << next.error().ToString();
      },
      2);
}

// What of a save must be the same, and how the error says it.
struct Difference {
  std::string message;
  SaveOptions usual{.step = 7};
  SaveOptions of_last{.step = 7};
  bool is_other_target = false;
};

TEST(SameCallTest, WhatRanksDisagreeInIsNamedWithItsValues) {
  OnJobs(
      [](SaveJob& job) {
        const std::string on_last = " on rank " + std::to_string(job.size() - 1);
        const std::vector<Difference> differences = {
            {.message = "step is 7 on rank 0, none", .of_last = {}},
            {.message = "step is none on rank 0, 7", .usual = {}},
            {.message = "mesh is data=2,tensor=4 on rank 0, data=8",
             .usual = {.step = 7, .mesh = {{"data", 2}, {"tensor", 4}}},
             .of_last = {.step = 7, .mesh = {{"data", 8}}}},
            {.message = "allow_empty is off on rank 0, on",
             .of_last = {.step = 7, .allow_empty = true}},
            {.message = "target is " + job.path("ckpt") + " on rank 0, " + job.path("other"),
             .is_other_target = true}};
        for (const Difference& difference : differences) {
          const bool is_other = difference.is_other_target && job.is_last();
          const Status status =
              job.Save(UsualDeclaration(job.comm),
                       SaveTarget::Directory(job.path(is_other ? "other" : "ckpt")),
                       job.is_last() ? difference.of_last : difference.usual)
                  .status();
          EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-17"));
          EXPECT_THAT(status.message(), HasSubstr(difference.message + on_last));
          job.ExpectSameOnAllRanks(status);
        }
        EXPECT_TRUE(job.Save(UsualDeclaration(job.comm)).ok());
      },
      2);
}

}  // namespace
}  // namespace sealpoint::testing
