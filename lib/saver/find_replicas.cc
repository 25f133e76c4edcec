// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/find_replicas.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/base/endian.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/declaration_summary.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::saver {
namespace {

// A hash of what is held. Two things have the same one with a chance of 2^-128 only.
using Key = Digest;
struct KeyHash {
  std::size_t operator()(const Key& key) const { return LoadLe<std::uint64_t>(key.bytes, 8); }
};

constexpr std::uint64_t kAlone = 0;  // in an answer; n: the list of holders number n - 1

// The first number of a key's bytes is the kind, so that no object has the key of a region.
class KeyMaker {
 public:
  Key OfRegion(std::string_view tensor, const Region& region) {
    bytes_.clear();
    WireWriter out(bytes_);
    out.Put(std::uint64_t{1});
    out.Put(tensor);
    out.Put(region.box.offset);
    out.Put(region.box.extent);
    out.PutAll(std::array{region.run.begin, region.run.end});
    return ComputeDigest(bytes_);
  }
  Key OfObject(std::string_view name) {
    bytes_.clear();
    WireWriter out(bytes_);
    out.Put(std::uint64_t{0});
    out.Put(name);
    return ComputeDigest(bytes_);
  }

 private:
  Bytes bytes_;
};

std::size_t OwnerOf(const Key& key, int size) {
  return LoadLe<std::uint64_t>(key.bytes, 0) % static_cast<std::uint64_t>(size);
}

// What this rank asks for, in the order of its questions to each owner.
struct Question {
  bool is_object = false;
  std::size_t number = 0;  // of the slot or the object
};

struct Questions {
  explicit Questions(int size)
      : by_owner(static_cast<std::size_t>(size)), messages(by_owner.size()) {}

  void Add(const Key& key, Question question) {
    const std::size_t owner = OwnerOf(key, static_cast<int>(by_owner.size()));
    by_owner[owner].push_back(question);
    WireWriter(messages[owner]).Put(key);
  }

  std::vector<std::vector<Question>> by_owner;
  std::vector<Bytes> messages;
};

Questions Ask(const Declaration& held, int size) {
  Questions questions(size);
  KeyMaker keys;
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(held);
  for (std::size_t slot = 0; slot < summary.slots().size(); ++slot) {
    const writer::DeclaredView tensor = summary.held(slot);
    if (tensor.is_empty() || !tensor.replicas.empty()) continue;
    questions.Add(keys.OfRegion(tensor.name, tensor.region()),
                  {.is_object = false, .number = slot});
  }
  for (std::size_t i = 0; i < held.objects().size(); ++i) {
    questions.Add(keys.OfObject(held.objects()[i].name), {.is_object = true, .number = i});
  }
  return questions;
}

// The answers of the owner of hashes: to each rank, for each of its questions the number of a list
// of holders, after those lists.
class Owner {
 public:
  explicit Owner(const std::vector<Bytes>& questions) : questions_(questions) {}

  Status Read();
  std::vector<Bytes> Answer() const;

 private:
  Bytes AnswerTo(ByteSpan questions) const;

  const std::vector<Bytes>& questions_;
  std::unordered_map<Key, std::vector<int>, KeyHash> holders_;
};

Status Owner::Read() {
  for (std::size_t rank = 0; rank < questions_.size(); ++rank) {
    WireReader in(questions_[rank]);
    while (!in.at_end()) {
      SEALPOINT_ASSIGN_OR_RETURN(const Key key, in.Id<Key>());
      std::vector<int>& holders = holders_[key];
      // The same region twice on one rank is for the check of the declarations to find.
      if (holders.empty() || holders.back() != static_cast<int>(rank)) {
        holders.push_back(static_cast<int>(rank));
      }
    }
  }
  return {};
}

// Precondition: Read succeeded on these bytes, so that each key is well formed and has holders.
Bytes Owner::AnswerTo(ByteSpan questions) const {
  std::map<std::vector<int>, std::uint64_t> numbers;  // its nodes stay: `lists` points to the keys
  std::vector<const std::vector<int>*> lists;
  std::vector<std::uint64_t> answers;
  WireReader in(questions);
  while (!in.at_end()) {
    const std::vector<int>& holders = holders_.at(*in.Id<Key>());
    if (holders.size() == 1) {
      answers.push_back(kAlone);
      continue;
    }
    const auto [entry, is_new] = numbers.emplace(holders, lists.size());
    if (is_new) lists.push_back(&entry->first);
    answers.push_back(entry->second + 1);
  }
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(std::uint64_t{lists.size()});
  for (const std::vector<int>* list : lists) {
    out.PutSequence(std::vector<std::uint64_t>(list->begin(), list->end()));
  }
  out.Put(answers);
  return bytes;
}

std::vector<Bytes> Owner::Answer() const {
  std::vector<Bytes> outgoing;
  for (const Bytes& questions : questions_) {
    outgoing.push_back(questions.empty() ? Bytes() : AnswerTo(questions));
  }
  return outgoing;
}

// The holders of each slot and object; empty: this rank alone.
struct Holders {
  explicit Holders(const Declaration& held)
      : slots(held.tensors().size()), objects(held.objects().size()) {}
  std::vector<std::vector<int>> slots;
  std::vector<std::vector<int>> objects;
};

Status ReadAnswer(ByteSpan answer, int size, const std::vector<Question>& questions,
                  Holders& holders) {
  if (questions.empty()) return {};
  WireReader in(answer);
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, in.Number());
  std::vector<std::vector<int>> lists;
  for (std::uint64_t i = 0; i < count; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> ranks,
                               in.Sequence(static_cast<std::uint64_t>(size)));
    lists.emplace_back(ranks.begin(), ranks.end());
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> answers, in.Numbers());
  if (answers.size() != questions.size()) return MalformedMessage();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == kAlone) continue;
    if (answers[i] > lists.size()) return MalformedMessage();
    auto& of_kind = questions[i].is_object ? holders.objects : holders.slots;
    of_kind[questions[i].number] = lists[answers[i] - 1];
  }
  return {};
}

// The rank that writes an object: one of the writer ranks if any holds it, and not the same one for
// every name. Must depend on nothing that only one rank knows: each holder computes it by itself,
// and the object is written once only if all come to the same rank.
int WriterOf(std::string_view object, const std::vector<int>& holders,
             std::span<const int> writer_ranks) {
  std::vector<int> writers;
  for (const int rank : holders) {
    if (Writes(writer_ranks, rank)) writers.push_back(rank);
  }
  const std::vector<int>& candidates = writers.empty() ? holders : writers;
  return candidates[OwnerOf(KeyMaker().OfObject(object), static_cast<int>(candidates.size()))];
}

Result<FoundReplicas> WithHolders(const Declaration& held, Holders holders, int rank,
                                  std::span<const int> writer_ranks) {
  FoundReplicas found;
  for (std::size_t slot = 0; slot < held.tensors().size(); ++slot) {
    DeclaredTensor tensor = held.tensors()[slot];
    if (!holders.slots[slot].empty()) tensor.replicas = std::move(holders.slots[slot]);
    InternalAccess::AddSlot(found.declaration, tensor);
  }
  for (std::size_t i = 0; i < held.objects().size(); ++i) {
    const ObjectSpec& object = held.objects()[i];
    const std::vector<int>& ranks = holders.objects[i];
    if (!ranks.empty()) found.shared_objects[ranks].push_back(i);
    if (!ranks.empty() && WriterOf(object.name, ranks, writer_ranks) != rank) continue;
    SEALPOINT_RETURN_IF_ERROR(found.declaration.AddObject(object));
    found.objects.push_back(i);
  }
  return found;
}

}  // namespace

Result<FoundReplicas> FindReplicas(Communicator& comm, const Declaration& held,
                                   std::span<const int> writer_ranks) {
  // Every rank makes both exchanges. One that received a malformed question keeps its error until
  // it has sent empty answers, which the others refuse: returning before would leave them waiting.
  Questions questions = Ask(held, comm.size());
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> asked,
                             comm.AllToAll(std::move(questions.messages)));
  Owner owner(asked);
  const Status read = owner.Read();
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::vector<Bytes> answers,
      comm.AllToAll(read.ok() ? owner.Answer() : std::vector<Bytes>(asked.size())));
  SEALPOINT_RETURN_IF_ERROR(read);
  Holders holders(held);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(ReadAnswer(answers[i], comm.size(), questions.by_owner[i], holders));
  }
  return WithHolders(held, std::move(holders), comm.rank(), writer_ranks);
}

Result<Sources> SelectSources(const FoundReplicas& found, const Sources& held) {
  Sources selected(found.declaration);
  for (std::size_t slot = 0; slot < held.tensors().size(); ++slot) {
    const std::optional<MemoryView>& view = held.tensors()[slot];
    if (view) SEALPOINT_RETURN_IF_ERROR(selected.Bind(slot, *view));
  }
  for (const std::size_t i : found.objects) {
    SEALPOINT_RETURN_IF_ERROR(
        selected.BindObject(held.declaration().objects()[i].name, *held.objects()[i]));
  }
  return selected;
}

ItemsByHolders FindSharedItems(const Declaration& declaration, SharedObjects shared_objects) {
  // Digests are compared by position, so each holder must come to the same order: tensors ascend by
  // name here, and are sorted by region below, whatever the slots of this rank.
  ItemsByHolders shared_items;
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  summary.ForEachTensor([&](std::span<const std::size_t> slots) {
    std::vector<std::pair<Region, std::size_t>> shared;  // by region
    for (const std::size_t slot : slots) {
      const writer::DeclaredView held = summary.held(slot);
      if (held.replicas.size() < 2 || held.is_empty()) continue;
      shared.emplace_back(held.region(), slot);
    }
    std::sort(shared.begin(), shared.end());
    for (const auto& [region, slot] : shared) {
      const std::span<const int> holders = summary.held(slot).replicas;
      shared_items[{holders.begin(), holders.end()}].slots.push_back(slot);
    }
  });
  for (auto& [holders, objects] : shared_objects)
    shared_items[holders].objects = std::move(objects);
  return shared_items;
}

}  // namespace sealpoint::internal::saver
