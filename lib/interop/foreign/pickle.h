// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_PICKLE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_PICKLE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/interop/foreign/budget.h"

namespace sealpoint::internal::foreign {

struct Pickled;
using PickledItems = std::vector<Pickled*>;
using PickledPairs = std::vector<std::pair<Pickled*, Pickled*>>;

// Contents of a pickle. Nothing in it is ever called or instantiated. Shared and cyclic structures
// are preserved; code that traverses them must bound that.
struct Pickled {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInt,
    kLargeInt,  // beyond 64 bits: in decimal
    kFloat,
    kText,
    kBytes,
    kGlobal,  // a class or function: its name
    kList,    // first kind with parts
    kTuple,
    kMapping,
    kSet,
    kFrozenSet,
    kObject,      // an object described by its class name and arguments
    kPersistent,  // stored elsewhere: its id, and in files before 1.6 the view of it or none
  };
  struct Parts {
    PickledItems items;       // also items that would be added to an object afterwards
    PickledPairs pairs;       // of a mapping or an object
    Pickled* args = nullptr;  // of an object: a tuple
    Pickled* state = nullptr;
  };

  Kind kind = Kind::kNone;
  union {
    std::int64_t number = 0;  // also of kBool
    double real;
    Parts* structure;  // of all kinds that have some
  };
  std::string_view text;  // of the pickle, or of the decoder

  // Null if its kind has none.
  const Parts* parts() const { return HasParts(kind) ? structure : nullptr; }
  static bool HasParts(Kind kind) { return kind >= Kind::kList; }
  bool is(Kind other) const { return kind == other; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
};

// Python's name, such as "list" or "NoneType"; for an object, also the name of its class.
std::string_view KindName(Pickled::Kind kind);
std::string KindName(const Pickled& value);

// Decodes one pickle of protocols 2 to 5. Instructions of other protocols, and instructions that
// build classes in other ways, are refused. Counts, lengths and the memory of the decoded values
// are limited.
class PickleDecoder {
 public:
  static constexpr std::uint64_t kInstructionsMax = 50'000'000;

  // Returns true if a class or function may occur. Others are refused, unless `keeps_unknown`.
  using IsKnown = std::function<bool(std::string_view name)>;

  // Borrows the bytes, which are the whole pickle. `budget`: gets the cost of all that is made.
  // `path`, `offset`: for errors.
  PickleDecoder(std::string_view data, IsKnown is_known, Budget& budget, std::string path,
                std::uint64_t offset, bool keeps_unknown);
  virtual ~PickleDecoder() = default;
  PickleDecoder(const PickleDecoder&) = delete;
  PickleDecoder& operator=(const PickleDecoder&) = delete;

  // Valid while the decoder lives. Throws Failure: Corrupt, Unsupported, LimitExceeded.
  const Pickled& Decode(std::uint64_t instructions_max = kInstructionsMax);
  // Where the pickle ends; and how many bytes, more than there are, it would have taken.
  std::uint64_t end() const { return at_; }
  std::uint64_t needed() const { return needed_; }

 protected:
  using Kind = Pickled::Kind;

  // Instructions of files before 1.6; false if it is none of them.
  virtual bool StepOther(unsigned char /*code*/) { return false; }
  // Resolves a persistent id.
  virtual Pickled* Persistent(Pickled* id);
  std::uint64_t TakeNumber(std::size_t size) { return NumberOf(Take(size)); }
  void PushBytes(Kind kind, std::uint64_t size);
  Pickled* Make(Kind kind);
  void Cost(std::uint64_t bytes) { budget_.Add(bytes, path_); }
  [[noreturn]] void Corrupt(const std::string& message) const;

 private:
  bool Step(unsigned char code);  // false if the instruction is not known
  bool StepConstant(unsigned char code);
  bool StepBytes(unsigned char code);
  bool StepContainer(unsigned char code);
  bool StepStack(unsigned char code);
  bool StepObject(unsigned char code);

  std::string_view Take(std::uint64_t size);
  static std::uint64_t NumberOf(std::string_view bytes);
  std::string_view TakeLine();
  std::string_view CheckText(std::string_view bytes) const;

  void Push(Pickled* value) { stack_.push_back(value); }
  void PushInt(std::uint64_t size);
  void PushItems(Kind kind, PickledItems items);
  Pickled* Pop();
  Pickled* Top();
  PickledItems PopToMark();
  PickledItems PopCount(std::size_t count);
  void Extend(const PickledItems& items);
  void SetItems(const PickledItems& items);
  void AddGlobal(std::string name);
  void AddGlobalOfStack();
  void AddObject(bool is_new);
  void SetState();
  void Remember(std::uint64_t index);
  void Recall(std::uint64_t index);

  [[noreturn]] void Unsupported(const std::string& message) const;

  const std::string_view data_;
  const IsKnown is_known_;
  const std::string path_;
  const std::uint64_t offset_;
  const bool keeps_unknown_;
  std::uint64_t at_ = 0;
  std::uint64_t needed_ = 0;
  Budget& budget_;
  std::deque<Pickled> values_;
  std::deque<Pickled::Parts> parts_;
  std::deque<std::string> texts_;  // that are not in the pickle as they are
  Pickled constants_[3];           // None, False, True
  std::vector<Pickled*> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Pickled*> memo_;  // in order, as picklers count
  std::unordered_map<std::uint64_t, Pickled*> memo_beyond_;
};

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_PICKLE_H_
