// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_SAVER_FROZEN_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_SAVER_FROZEN_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/format/constants.h"
#include "sealpoint/saver.h"
#include "tests/support/state/save_in_mode.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {

inline constexpr std::uint64_t kBaseSize = 40000;  // chunks of 4 KiB, the last one shorter
inline constexpr std::uint64_t kAdapterSize = 100;

// A base that is not trained, and an adapter that is.
struct LoraState {
  std::map<std::string, TensorSpec> tensors{};
  std::map<std::string, Bytes> contents{};

  LoraState() {
    for (const std::string name : {"base.a", "base.b"}) Add(name, kBaseSize, "frozen");
    Add("adapter", kAdapterSize, "");
  }
  void Add(const std::string& name, std::uint64_t size, const std::string& group) {
    tensors[name] = ByteTensor(name, size);
    tensors[name].group = group;
    contents[name] = Bytes(size, std::byte(name.back()));
  }
};

class FrozenTest : public ::testing::Test {
 protected:
  static SaverOptions Options() { return {.frozen_groups = {"frozen"}}; }

  // Each rank holds its part of every tensor, as equal as they get.
  Result<CommitInfo> SaveOn(Communicator& comm, Saver& saver, const LoraState& state,
                            const SaveTarget& target) {
    Declaration declaration;
    Sources sources(declaration);
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    const auto size = static_cast<std::uint64_t>(comm.size());
    std::vector<MemoryView> views;
    for (const auto& [name, tensor] : state.tensors) {
      const Bytes& bytes = state.contents.at(name);
      const std::uint64_t begin = bytes.size() * rank / size;
      const std::uint64_t end = bytes.size() * (rank + 1) / size;
      EXPECT_TRUE(declaration.Add({.tensor = tensor, .region = Slice(begin, end)}).ok());
      views.push_back(MemoryView::Host(bytes.data() + begin, end - begin));
    }
    Sources bound(declaration);
    for (std::size_t i = 0; i < views.size(); ++i) EXPECT_TRUE(bound.Bind(i, views[i]).ok());
    return SaveInMode(saver, target, {.step = step_}, bound);
  }
  Result<CommitInfo> Save(const LoraState& state, const SaverOptions& options = Options(),
                          const SaveTarget& target = SaveTarget::InSeries("run")) {
    ++step_;
    const auto engine = SmallEngine(storage_, BufferCountForSaves(8));
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm, options).value();
    return SaveOn(*comm, *saver, state, target);
  }
  void ExpectHolds(const CommitInfo& info, const LoraState& state) {
    EXPECT_EQ(FindDamage(memory_, info.directory), "");
    ExpectLoads(info, state);
  }
  void ExpectLoads(const CommitInfo& info, const LoraState& state) {
    const auto checkpoint = OpenFrom(memory_, info.directory);
    for (const auto& [name, content] : state.contents) {
      EXPECT_EQ(LoadWhole(*checkpoint, name), content) << name;
    }
  }
  static std::string NameOf(const CommitInfo& info) {
    return info.directory.substr(info.directory.rfind('/') + 1);
  }
  std::vector<std::string> Blobs(const CommitInfo& info) const {
    std::vector<std::string> names = FileNames(*memory_, info.directory);
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".blob"); });
    return names;
  }

  std::uint64_t step_ = 0;
  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_SAVER_FROZEN_FIXTURE_H_
