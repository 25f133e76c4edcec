// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "exchange.h"
#include "fingerprint.h"
#include "random.h"
#include "sealpoint/communicator.h"
#include "sealpoint/mesh.h"
#include "trainer.h"

// Small trainings on ranks that are threads.
namespace char_lm {

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

// What a rank may use to talk to the others.
struct Rank {
  GradientExchange& exchange;
  sealpoint::Communicator& communicator;
};

inline void OnMesh(const sealpoint::Mesh& mesh, const std::function<void(const Rank&)>& body) {
  ThreadGroup group(static_cast<std::size_t>(mesh.size()));
  auto communicators = sealpoint::ThreadCommunicators(mesh.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&group, &body, &communicators, rank] {
      ThreadExchange exchange(group, rank);
      body({.exchange = exchange, .communicator = *communicators[rank]});
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

inline sealpoint::Mesh MeshOf(std::uint32_t data, std::uint32_t tensor) {
  return sealpoint::Mesh::Create({{"data", data}, {"tensor", tensor}}).value();
}

inline std::string SomeText() {
  std::string text;
  for (std::uint64_t i = 0; i < 40; ++i) {
    text += "the quick brown fox " + std::to_string(CounterRng(3, 0).Peek(i) % 1000) + " jumps\n";
  }
  return text;
}

inline TrainingArguments SmallArguments() {
  TrainingArguments arguments;
  arguments.model.context = 4;
  arguments.model.embedding = 6;
  arguments.model.hidden0 = 16;
  arguments.model.hidden1 = 8;
  return arguments;
}

// The losses of some steps, and all parameters and moments behind the last one.
struct Trained {
  std::vector<float> losses;
  std::vector<float> state;
};

// Trains up to a step. All ranks must see the same.
inline Trained TrainTo(std::uint64_t steps, Trainer& trainer) {
  Trained trained;
  while (trainer.step() < steps) {
    trained.losses.push_back(trainer.Step());
  }
  trained.state = trainer.WholeState();
  return trained;
}

inline void ExpectSame(const Trained& a, const Trained& b) {
  EXPECT_TRUE(SameBits(a.losses, b.losses));
  EXPECT_TRUE(SameBits(a.state, b.state));
}

}  // namespace char_lm
