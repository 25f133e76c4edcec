// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_PICKLE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_PICKLE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/ckpt-inspect/foreign/unfolding.h"

namespace sealpoint::tools {

struct Pickled;
using PickledItems = std::vector<Pickled*>;
using PickledPairs = std::vector<std::pair<Pickled*, Pickled*>>;

// What a pickle describes. Nothing is ever called or made of it. Shared and cyclic structures stay
// as they are; who walks over them has to bound that.
struct Pickled {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInt,
    kLargeInt,  // beyond 64 bits: in decimal
    kFloat,
    kText,
    kBytes,
    kList,
    kTuple,
    kMapping,
    kSet,
    kFrozenSet,
    kGlobal,      // a class or function: its name
    kObject,      // what one would make of arguments: its name
    kPersistent,  // stored elsewhere: its id is the only item
  };
  struct Parts {
    PickledItems items;       // also those that an object would be given afterwards
    PickledPairs pairs;       // of a mapping or an object
    Pickled* args = nullptr;  // of an object: a tuple
    Pickled* state = nullptr;
  };

  Kind kind = Kind::kNone;
  std::int64_t number = 0;
  double real = 0;
  std::string text;
  std::unique_ptr<Parts> parts;  // of all kinds that have some

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
};

// "list", "NoneType", …: as Python calls it.
std::string_view KindName(Pickled::Kind kind);

// Decodes one pickle of the protocols 2 to 5: instructions of other protocols, and those that would
// build classes by other ways, are refused. Counts and lengths are bounded.
class PickleDecoder {
 public:
  // Of classes and functions that may occur. Others are refused, unless `keeps_unknown`.
  using IsKnown = std::function<bool(std::string_view name)>;

  // Borrows the bytes, which are the whole pickle. `path`, `offset`: for errors.
  PickleDecoder(std::string_view data, IsKnown is_known, std::string path, std::uint64_t offset,
                bool keeps_unknown);
  PickleDecoder(const PickleDecoder&) = delete;
  PickleDecoder& operator=(const PickleDecoder&) = delete;

  // Valid while the decoder lives. Throws Failure: Corrupt, Unsupported, LimitExceeded.
  const Pickled& Decode();

 private:
  using Kind = Pickled::Kind;

  bool Step(unsigned char code);  // false if the instruction is not known
  bool StepConstant(unsigned char code);
  bool StepBytes(unsigned char code);
  bool StepContainer(unsigned char code);
  bool StepStack(unsigned char code);
  bool StepObject(unsigned char code);

  std::string_view Take(std::uint64_t size);
  std::uint64_t TakeNumber(std::size_t size) { return NumberOf(Take(size)); }
  static std::uint64_t NumberOf(std::string_view bytes);
  std::string TakeLine();
  std::string CheckText(std::string_view bytes) const;

  Pickled* Make(Kind kind);
  void Push(Pickled* value) { stack_.push_back(value); }
  void PushBytes(Kind kind, std::uint64_t size);
  void PushInt(std::uint64_t size);
  void PushItems(Kind kind, PickledItems items);
  Pickled* Pop();
  Pickled* Top();
  PickledItems PopToMark();
  PickledItems PopCount(std::size_t count);
  void Extend(const PickledItems& items);
  void SetItems(const PickledItems& items);
  void AddGlobal(const std::string& name);
  void AddGlobalOfStack();
  void AddObject(bool is_new);
  void SetState();
  void Recall(std::uint64_t index);

  [[noreturn]] void Corrupt(const std::string& message) const;
  [[noreturn]] void Unsupported(const std::string& message) const;

  const std::string_view data_;
  const IsKnown is_known_;
  const std::string path_;
  const std::uint64_t offset_;
  const bool keeps_unknown_;
  std::uint64_t at_ = 0;
  std::deque<Pickled> values_;
  std::vector<Pickled*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Pickled*> memo_;
  Unfolding names_;  // of classes, which each object has
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_PICKLE_H_
