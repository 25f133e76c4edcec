// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpointing.h"
#include "corpus.h"
#include "fingerprint.h"
#include "thread_ranks.h"
#include "trainer.h"

namespace char_lm {
namespace {

Trained TrainOn(const sealpoint::Mesh& mesh, std::uint64_t steps) {
  const Corpus corpus = TokenizeText(SomeText());
  std::vector<Trained> results(static_cast<std::size_t>(mesh.size()));
  OnMesh(mesh, [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, mesh);
    results[rank.exchange.rank()] = TrainTo(steps, trainer);
  });
  for (const Trained& result : results) {
    ExpectSame(result, results.front());
  }
  return results.front();
}

TEST(Training, BitsDoNotDependOnTheMesh) {
  const Trained alone = TrainOn(MeshOf(1, 1), 8);
  EXPECT_EQ(alone.losses.size(), 8U);
  const sealpoint::Mesh tensor_first =
      sealpoint::Mesh::Create({{"tensor", 3}, {"data", 2}}).value();
  for (const sealpoint::Mesh& mesh : {MeshOf(2, 1), MeshOf(3, 1), MeshOf(13, 1), MeshOf(1, 2),
                                      MeshOf(2, 2), MeshOf(1, 5), tensor_first}) {
    SCOPED_TRACE(testing::PrintToString(mesh.axes()));
    ExpectSame(alone, TrainOn(mesh, 8));
  }
}

TEST(Training, LossFalls) {
  const Corpus corpus = TokenizeText(SomeText());
  OnMesh(MeshOf(1, 1), [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, MeshOf(1, 1));
    const Trained trained = TrainTo(300, trainer);
    EXPECT_LT(trained.losses.back(), 0.6F * trained.losses.front());
  });
}

class Resuming : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "resuming-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    options_.series_directory = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(options_.series_directory); }

  CheckpointOptions options_;
};

TEST_F(Resuming, OnAnotherMeshGoesOnWithTheSameBits) {
  const Corpus corpus = TokenizeText(SomeText());
  std::vector<float> saved;
  OnMesh(MeshOf(2, 2), [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, MeshOf(2, 2));
    const auto checkpointing = Checkpointing::Create(options_, rank.communicator, trainer);
    const Trained trained = TrainTo(5, trainer);
    EXPECT_TRUE((*checkpointing)->Save().ok());
    if (rank.exchange.rank() == 0) {
      saved = trained.state;
    }
  });
  Trained expected = TrainOn(MeshOf(1, 1), 8);
  expected.losses.erase(expected.losses.begin(), expected.losses.begin() + 5);
  for (const sealpoint::Mesh& mesh : {MeshOf(1, 1), MeshOf(1, 2), MeshOf(3, 1), MeshOf(2, 3)}) {
    SCOPED_TRACE(testing::PrintToString(mesh.axes()));
    OnMesh(mesh, [&](const Rank& rank) {
      Trainer trainer(SmallArguments(), corpus, rank.exchange, mesh);
      const auto checkpointing = Checkpointing::Create(options_, rank.communicator, trainer);
      const auto resumed = (*checkpointing)->Resume();
      ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
      EXPECT_EQ(trainer.step(), 5U);
      EXPECT_TRUE(SameBits(trainer.WholeState(), saved));
      ExpectSame(TrainTo(8, trainer), expected);
    });
  }
}

// The training goes on at once, so that what is stored would show any byte taken later.
TEST_F(Resuming, FromASaveInTheBackgroundGoesOnWithTheSameBits) {
  const Corpus corpus = TokenizeText(SomeText());
  const std::vector<float> at_the_save = TrainOn(MeshOf(2, 2), 5).state;
  OnMesh(MeshOf(2, 2), [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, MeshOf(2, 2));
    const auto checkpointing = Checkpointing::Create(options_, rank.communicator, trainer);
    TrainTo(5, trainer);
    const auto pending = (*checkpointing)->SaveAsync();
    ASSERT_TRUE(pending.ok()) << pending.error().ToString();
    TrainTo(8, trainer);
    EXPECT_TRUE((*pending)->Wait().ok());
  });
  OnMesh(MeshOf(3, 1), [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, MeshOf(3, 1));
    const auto checkpointing = Checkpointing::Create(options_, rank.communicator, trainer);
    ASSERT_TRUE((*checkpointing)->Resume().ok());
    EXPECT_EQ(trainer.step(), 5U);
    EXPECT_TRUE(SameBits(trainer.WholeState(), at_the_save));
  });
}

TEST_F(Resuming, FromAnEmptySeriesChangesNothing) {
  const Corpus corpus = TokenizeText(SomeText());
  OnMesh(MeshOf(2, 1), [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, MeshOf(2, 1));
    const std::vector<float> before = trainer.WholeState();
    const auto checkpointing = Checkpointing::Create(options_, rank.communicator, trainer);
    EXPECT_EQ((*checkpointing)->Resume().value(), "");
    EXPECT_TRUE(SameBits(trainer.WholeState(), before));
  });
}

TEST(Training, RefusesObjectsOfAnotherTraining) {
  const Corpus corpus = TokenizeText(SomeText());
  const Corpus changed = TokenizeText(SomeText() + "f");
  OnMesh(MeshOf(1, 1), [&](const Rank& rank) {
    Trainer trainer(SmallArguments(), corpus, rank.exchange, MeshOf(1, 1));
    TrainingArguments other = SmallArguments();
    other.adam.learning_rate = 0.5F;
    std::string error;
    Trainer faster(other, corpus, rank.exchange, MeshOf(1, 1));
    EXPECT_FALSE(faster.RestoreObjects(trainer.Objects(), error));
    EXPECT_NE(error.find("\"learning_rate\": 0.5"), std::string::npos) << error;
    Trainer elsewhere(SmallArguments(), changed, rank.exchange, MeshOf(1, 1));
    EXPECT_FALSE(elsewhere.RestoreObjects(trainer.Objects(), error));
    EXPECT_NE(error.find("another corpus"), std::string::npos) << error;
    std::vector<StateObject> objects = trainer.Objects();
    objects.back().bytes.pop_back();
    EXPECT_FALSE(trainer.RestoreObjects(objects, error));
    EXPECT_NE(error.find("malformed"), std::string::npos) << error;
  });
}

TEST(ShardedState, MomentsLieOnOneDataRankAndVectorsOnAllTensorRanks) {
  const Model model({.vocabulary = 3, .context = 4, .embedding = 6, .hidden0 = 16, .hidden1 = 8});
  const sealpoint::Mesh mesh = MeshOf(4, 2);
  std::vector<int> holders(model.parameter_count());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    const ShardedState state(model.tensors(), mesh, rank);
    std::vector<float> held(model.parameter_count());
    state.shards().Unpack(rank, std::vector<float>(state.shard_size(), 1.0F), held);
    for (std::size_t i = 0; i < held.size(); ++i) {
      holders[i] += held[i] > 0.0F ? 1 : 0;
    }
  }
  for (const ParameterTensor& tensor : model.tensors()) {
    for (const int count : tensor.In(std::span(holders))) {
      ASSERT_EQ(count, tensor.tensor_parallel_dim ? 1 : 2) << tensor.name;
    }
  }
}

TEST(ShardedState, TensorsTellWhatTheRankHas) {
  const Model model({.vocabulary = 3, .context = 4, .embedding = 6, .hidden0 = 16, .hidden1 = 8});
  const ShardedState state(model.tensors(), MeshOf(2, 2), 3);
  std::vector<float> weights(state.weights_size());
  std::vector<float> moments(2 * state.shard_size());
  const auto exp_avg = std::span(moments).first(state.shard_size());
  const auto exp_avg_sq = std::span(moments).last(state.shard_size());
  std::map<std::string, std::string> regions;
  for (const LocalTensor& tensor :
       state.Tensors({.weights = weights, .exp_avg = exp_avg, .exp_avg_sq = exp_avg_sq})) {
    ASSERT_LE(tensor.layout.parts.size(), 1U);
    regions[tensor.name] =
        tensor.layout.parts.empty() ? "" : tensor.layout.parts[0].region.ToString();
  }
  EXPECT_EQ(regions.size(), 24U);
  EXPECT_EQ(regions["model.hidden0.weight"], "[8:16, 0:24]");
  EXPECT_EQ(regions["model.hidden1.weight"], "[0:8, 8:16]");
  EXPECT_EQ(regions["model.hidden1.bias"], "[0:8]");
  EXPECT_EQ(regions["optimizer.exp_avg.model.hidden0.weight"], "[8:16, 0:24] run 96:192");
  EXPECT_EQ(regions["optimizer.exp_avg_sq.model.hidden1.weight"], "[0:8, 8:16] run 32:64");
  EXPECT_EQ(regions["optimizer.exp_avg.model.hidden1.bias"], "[0:8] run 4:8");
  EXPECT_EQ(regions["optimizer.exp_avg.model.output.scale"], "");
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
