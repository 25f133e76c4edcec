// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "corpus.h"
#include "fingerprint.h"
#include "trainer.h"

namespace char_lm {
namespace {

// Ranks as threads of one process; each publishes its buffers and reads those of the others.
struct ThreadGroup {
  explicit ThreadGroup(std::size_t size)
      : barrier(static_cast<std::ptrdiff_t>(size)), sent(size), sent_counts(size) {}
  std::barrier<> barrier;
  std::vector<std::span<const float>> sent;
  std::vector<std::span<const std::size_t>> sent_counts;
};

class ThreadExchange final : public GradientExchange {
 public:
  ThreadExchange(ThreadGroup& group, std::size_t rank) : group_(group), rank_(rank) {}

  [[nodiscard]] std::size_t rank() const override { return rank_; }
  [[nodiscard]] std::size_t size() const override { return group_.sent.size(); }

  void AllToAll(std::span<const float> send, std::span<const std::size_t> send_counts,
                std::span<float> receive, std::span<const std::size_t> receive_counts) override {
    group_.sent[rank_] = send;
    group_.sent_counts[rank_] = send_counts;
    group_.barrier.arrive_and_wait();
    for (std::size_t from = 0; from < size(); ++from) {
      std::size_t begin = 0;
      for (std::size_t to = 0; to < rank_; ++to) {
        begin += group_.sent_counts[from][to];
      }
      ASSERT_EQ(group_.sent_counts[from][rank_], receive_counts[from]);
      std::copy_n(group_.sent[from].subspan(begin).begin(), receive_counts[from], receive.begin());
      receive = receive.subspan(receive_counts[from]);
    }
    group_.barrier.arrive_and_wait();
  }

  void AllGather(std::span<const float> send, std::span<float> receive,
                 std::span<const std::size_t> counts) override {
    group_.sent[rank_] = send;
    group_.barrier.arrive_and_wait();
    for (std::size_t from = 0; from < size(); ++from) {
      ASSERT_EQ(group_.sent[from].size(), counts[from]);
      std::copy_n(group_.sent[from].begin(), counts[from], receive.begin());
      receive = receive.subspan(counts[from]);
    }
    group_.barrier.arrive_and_wait();
  }

 private:
  ThreadGroup& group_;
  std::size_t rank_;
};

void OnRanks(std::size_t size, const std::function<void(GradientExchange&)>& body) {
  ThreadGroup group(size);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&group, &body, rank] {
      ThreadExchange exchange(group, rank);
      body(exchange);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

std::string SomeText() {
  std::string text;
  for (std::uint64_t i = 0; i < 40; ++i) {
    text += "the quick brown fox " + std::to_string(CounterRng(3, 0).Peek(i) % 1000) + " jumps\n";
  }
  return text;
}

TrainingArguments SmallArguments() {
  TrainingArguments arguments;
  arguments.model.context = 4;
  arguments.model.embedding = 6;
  arguments.model.hidden0 = 16;
  arguments.model.hidden1 = 8;
  return arguments;
}

std::vector<float> TrainOn(std::size_t ranks, std::size_t steps) {
  const Corpus corpus = TokenizeText(SomeText());
  std::vector<std::vector<float>> results(ranks);
  OnRanks(ranks, [&](GradientExchange& exchange) {
    Trainer trainer(SmallArguments(), corpus, exchange);
    while (trainer.step() < steps) {
      trainer.Step();
    }
    results[exchange.rank()].assign(trainer.parameters().begin(), trainer.parameters().end());
  });
  for (const std::vector<float>& result : results) {
    EXPECT_TRUE(SameBits(result, results.front())) << "ranks hold different parameters";
  }
  return results.front();
}

TEST(Training, BitsDoNotDependOnTheNumberOfRanks) {
  const std::vector<float> alone = TrainOn(1, 8);
  for (const std::size_t ranks : {2U, 3U, 4U, 5U, 8U, 13U}) {
    EXPECT_TRUE(SameBits(alone, TrainOn(ranks, 8))) << ranks << " ranks";
  }
}

TEST(Training, LossFalls) {
  const Corpus corpus = TokenizeText(SomeText());
  OnRanks(1, [&](GradientExchange& exchange) {
    Trainer trainer(SmallArguments(), corpus, exchange);
    const float first = trainer.Step();
    float last = first;
    while (trainer.step() < 300) {
      last = trainer.Step();
    }
    EXPECT_LT(last, 0.6F * first);
  });
}

// A checkpoint in memory: whole tensors by name.
using Saved = std::map<std::string, std::vector<float>>;

// Copies between this rank's rows and the whole tensors.
void CopyTensors(Trainer& trainer, Saved& saved, bool save) {
  for (const ShardedTensor& tensor : trainer.Tensors()) {
    std::size_t row = 1;
    for (std::size_t d = 1; d < tensor.shape.size(); ++d) {
      row *= tensor.shape[d];
    }
    std::vector<float>& whole = saved.at(tensor.name);
    ASSERT_EQ(whole.size(), tensor.shape[0] * row);
    const std::span<float> rows =
        std::span(whole).subspan(tensor.offset[0] * row, tensor.extent[0] * row);
    if (save) {
      std::copy_n(tensor.data, rows.size(), rows.begin());
    } else {
      std::copy(rows.begin(), rows.end(), tensor.data);
    }
  }
}

Saved EmptyCheckpoint(Trainer& trainer) {
  Saved saved;
  for (const ShardedTensor& tensor : trainer.Tensors()) {
    std::size_t elements = 1;
    for (const std::uint64_t extent : tensor.shape) {
      elements *= extent;
    }
    saved[tensor.name].resize(elements);
  }
  return saved;
}

TEST(Training, ResumesOnAnotherNumberOfRanksWithTheSameBits) {
  const Corpus corpus = TokenizeText(SomeText());
  Saved saved;
  std::vector<StateObject> objects;
  OnRanks(1, [&](GradientExchange& exchange) {
    Trainer trainer(SmallArguments(), corpus, exchange);
    saved = EmptyCheckpoint(trainer);
  });
  OnRanks(4, [&](GradientExchange& exchange) {
    Trainer trainer(SmallArguments(), corpus, exchange);
    while (trainer.step() < 5) {
      trainer.Step();
    }
    CopyTensors(trainer, saved, true);
    if (exchange.rank() == 0) {
      objects = trainer.Objects();
    }
  });
  std::vector<float> resumed;
  OnRanks(3, [&](GradientExchange& exchange) {
    Trainer trainer(SmallArguments(), corpus, exchange);
    std::string error;
    ASSERT_TRUE(trainer.RestoreObjects(objects, error)) << error;
    CopyTensors(trainer, saved, false);
    trainer.FinishRestore();
    EXPECT_EQ(trainer.step(), 5U);
    while (trainer.step() < 8) {
      trainer.Step();
    }
    if (exchange.rank() == 0) {
      resumed.assign(trainer.parameters().begin(), trainer.parameters().end());
    }
  });
  EXPECT_TRUE(SameBits(resumed, TrainOn(1, 8)));
}

TEST(Training, RefusesObjectsOfAnotherTraining) {
  const Corpus corpus = TokenizeText(SomeText());
  const Corpus changed = TokenizeText(SomeText() + "f");
  OnRanks(1, [&](GradientExchange& exchange) {
    Trainer trainer(SmallArguments(), corpus, exchange);
    TrainingArguments other = SmallArguments();
    other.adam.learning_rate = 0.5F;
    std::string error;
    Trainer faster(other, corpus, exchange);
    EXPECT_FALSE(faster.RestoreObjects(trainer.Objects(), error));
    EXPECT_NE(error.find("\"learning_rate\": 0.5"), std::string::npos) << error;
    Trainer elsewhere(SmallArguments(), changed, exchange);
    EXPECT_FALSE(elsewhere.RestoreObjects(trainer.Objects(), error));
    EXPECT_NE(error.find("another corpus"), std::string::npos) << error;
    std::vector<StateObject> objects = trainer.Objects();
    objects.back().bytes.pop_back();
    EXPECT_FALSE(trainer.RestoreObjects(objects, error));
    EXPECT_NE(error.find("malformed"), std::string::npos) << error;
  });
}

TEST(ShardedState, EachRowHasExactlyOneOwnerAndSomeRanksOwnNone) {
  const Model model({.vocabulary = 3, .context = 4, .embedding = 6, .hidden0 = 16, .hidden1 = 8});
  constexpr std::size_t kRanks = 5;
  std::map<std::string, std::uint64_t> next_row;
  std::size_t empty = 0;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ShardedState state(model.tensors(), rank, kRanks);
    for (const ShardedTensor& tensor : state.Tensors()) {
      EXPECT_EQ(tensor.offset[0], next_row[tensor.name]) << tensor.name;
      next_row[tensor.name] += tensor.extent[0];
      empty += tensor.extent[0] == 0 ? 1U : 0U;
      if (rank + 1 == kRanks) {
        EXPECT_EQ(next_row[tensor.name], tensor.shape[0]) << tensor.name;
      }
    }
  }
  // [3, 6], [3, 8], [3] leave two ranks without rows, [1] leaves four; with both moments.
  EXPECT_EQ(empty, 3U * (2 + 2 + 2 + 4));
}

// The slope of the loss along its own gradient, by central differences, for each tensor alone.
TEST(Model, GradientOfEachTensorAgreesWithFiniteDifferences) {
  Model model({.vocabulary = 9, .context = 4, .embedding = 6, .hidden0 = 16, .hidden1 = 8});
  CounterRng rng(11, 0);
  std::vector<float> parameters(model.parameter_count());
  model.Initialize(rng, parameters);
  MicroBatch batch{.context = std::vector<std::uint8_t>(kLanes * 4)};
  for (std::size_t i = 0; i < batch.context.size(); ++i) {
    batch.context[i] = static_cast<std::uint8_t>(rng.Peek(i) % 9);
  }
  for (std::size_t s = 0; s < kLanes; ++s) {
    batch.target.at(s) = static_cast<std::uint8_t>(s);
  }
  std::vector<float> gradient(parameters.size(), -1.0F);
  model.LossAndGradient(batch, parameters, gradient);
  for (const ParameterTensor& tensor : model.tensors()) {
    const std::span<const float> slope = tensor.In(std::span<const float>(gradient));
    double square = 0.0;
    for (const float value : slope) {
      square += static_cast<double>(value) * static_cast<double>(value);
    }
    ASSERT_GT(square, 0.0) << tensor.name;
    const auto length = static_cast<float>(0.02 / std::sqrt(square));
    const auto loss_at = [&](float sign) {
      std::vector<float> moved = parameters;
      for (std::size_t i = 0; i < slope.size(); ++i) {
        moved[tensor.begin + i] += sign * length * slope[i];
      }
      return static_cast<double>(model.Loss(batch, moved));
    };
    const double measured = (loss_at(1.0F) - loss_at(-1.0F)) / (2.0 * static_cast<double>(length));
    EXPECT_NEAR(measured / square, 1.0, 0.01) << tensor.name;
  }
}

class CorpusFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "corpus-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  std::filesystem::path directory_;
};

TEST_F(CorpusFiles, AreReadInOrderOfNameWithoutLinksAndFolders) {
  Write("b", "ca");
  Write("a", "ab");
  std::filesystem::create_symlink("a", directory_ / "0");
  std::filesystem::create_directory(directory_ / "folder");
  std::string error;
  const auto corpus = LoadCorpus(directory_, error);
  ASSERT_TRUE(corpus) << error;
  EXPECT_EQ(corpus->file_count, 2U);
  EXPECT_EQ(corpus->vocabulary, (std::vector<std::uint8_t>{'a', 'b', 'c'}));
  EXPECT_EQ(corpus->tokens, (std::vector<std::uint8_t>{0, 1, 2, 0}));
}

TEST_F(CorpusFiles, BytesAboveSevenBitsAreTokensToo) {
  Write("a", "\xE9z\xE9");
  std::string error;
  const auto corpus = LoadCorpus(directory_, error);
  ASSERT_TRUE(corpus) << error;
  EXPECT_EQ(corpus->vocabulary, (std::vector<std::uint8_t>{'z', 0xE9}));
  EXPECT_EQ(corpus->tokens, (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST_F(CorpusFiles, MissingDirectoryAndMissingTextAreErrors) {
  std::string error;
  EXPECT_FALSE(LoadCorpus(directory_ / "none", error));
  EXPECT_NE(error.find("cannot list"), std::string::npos) << error;
  EXPECT_FALSE(LoadCorpus(directory_, error));
  EXPECT_NE(error.find("no text"), std::string::npos) << error;
}

}  // namespace
}  // namespace char_lm
