// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/pickle.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::size_t kNameBytesMax = 4096;

// Names of instructions that older protocols have, or that make classes by other ways.
std::string InstructionName(unsigned char code) {
  switch (code) {
    case 'I':
      return "INT";
    case 'L':
      return "LONG";
    case 'F':
      return "FLOAT";
    case 'S':
      return "STRING";
    case 'T':
      return "BINSTRING";
    case 'U':
      return "SHORT_BINSTRING";
    case 'V':
      return "UNICODE";
    case 'P':
      return "PERSID";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 'g':
      return "GET";
    case 'p':
      return "PUT";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return StrCat("0x", HexText(code, 2));
  }
}

}  // namespace

std::string_view KindName(Pickled::Kind kind) {
  constexpr std::string_view kNames[] = {"NoneType", "bool",  "int",    "int",    "float",
                                         "str",      "bytes", "Global", "list",   "tuple",
                                         "Dict",     "Set",   "Set",    "Object", "Persistent"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string KindName(const Pickled& value) {
  constexpr std::size_t kShownMax = 80;
  std::string name(KindName(value.kind));
  if (value.is(Pickled::Kind::kGlobal) || value.is(Pickled::Kind::kObject)) {
    name += StrCat(" of '", Printable(value.text.substr(0, kShownMax)), "'");
  }
  return name;
}

PickleDecoder::PickleDecoder(std::string_view data, IsKnown is_known, Budget& budget,
                             std::string path, std::uint64_t offset, bool keeps_unknown)
    : data_(data),
      is_known_(std::move(is_known)),
      path_(std::move(path)),
      offset_(offset),
      keeps_unknown_(keeps_unknown),
      budget_(budget) {
  constants_[1].kind = constants_[2].kind = Kind::kBool;
  constants_[2].number = 1;
}

void PickleDecoder::Corrupt(const std::string& message) const {
  throw Failure{Status(Code::kCorrupt, message).AtPath(path_).AtOffset(offset_ + at_)};
}

void PickleDecoder::Unsupported(const std::string& message) const {
  throw Failure{Status(Code::kUnsupported, message).AtPath(path_).AtOffset(offset_ + at_)};
}

const Pickled& PickleDecoder::Decode(std::uint64_t instructions_max) {
  for (std::uint64_t i = 0; i < instructions_max; ++i) {
    const auto code = static_cast<unsigned char>(Take(1).front());
    Cost(pickle_cost::kStep);
    if (code == '.') {
      if (stack_.size() != 1 || !marks_.empty()) {
        Corrupt(StrCat("pickle ends with ", stack_.size(), " values, expected 1"));
      }
      return *stack_.front();
    }
    if (!Step(code)) {
      Unsupported(StrCat("pickle has the instruction ", InstructionName(code),
                         ", which no protocol from 2 to 5 writes"));
    }
  }
  Fail(Code::kLimitExceeded, path_, "pickle has more than ", instructions_max, " instructions");
}

bool PickleDecoder::Step(unsigned char code) {
  return StepConstant(code) || StepBytes(code) || StepContainer(code) || StepStack(code) ||
         StepObject(code) || StepOther(code);
}

bool PickleDecoder::StepConstant(unsigned char code) {
  switch (code) {
    case 0x80: {
      const std::uint64_t version = TakeNumber(1);
      if (version < 2 || version > 5) {
        Unsupported(StrCat("pickle of protocol ", version, ", expected 2 to 5"));
      }
      return true;
    }
    case 0x95: {
      const std::uint64_t size = TakeNumber(8);
      if (size > data_.size() - at_) {
        needed_ = CappedAdd(at_, size);
        Corrupt(StrCat("pickle has ", data_.size() - at_, " bytes left, expected ", size,
                       " of a frame"));
      }
      return true;
    }
    case 'N':
      Push(&constants_[0]);
      return true;
    case 0x88:
    case 0x89:
      Push(&constants_[code == 0x88 ? 2 : 1]);
      return true;
    case 'K':
    case 'M': {
      const std::size_t size = code == 'K' ? 1 : 2;
      Cost(pickle_cost::kNumber + 4 * size);
      Pickled* const value = Make(Kind::kInt);
      value->number = static_cast<std::int64_t>(TakeNumber(size));
      Push(value);
      return true;
    }
    case 'G': {
      Cost(pickle_cost::kNumber);
      Pickled* const value = Make(Kind::kFloat);
      std::string bytes(Take(8));
      std::ranges::reverse(bytes);
      value->real = std::bit_cast<double>(Number(bytes, 0, 8));
      Push(value);
      return true;
    }
    default:
      return false;
  }
}

bool PickleDecoder::StepBytes(unsigned char code) {
  switch (code) {
    case 'J':
      PushInt(4);
      return true;
    case 0x8a:
      PushInt(TakeNumber(1));
      return true;
    case 0x8b:
      PushInt(TakeNumber(4));
      return true;
    case 0x8c:
      PushBytes(Kind::kText, TakeNumber(1));
      return true;
    case 'X':
      PushBytes(Kind::kText, TakeNumber(4));
      return true;
    case 0x8d:
      PushBytes(Kind::kText, TakeNumber(8));
      return true;
    case 'C':
      PushBytes(Kind::kBytes, TakeNumber(1));
      return true;
    case 'B':
      PushBytes(Kind::kBytes, TakeNumber(4));
      return true;
    case 0x8e:
    case 0x96:
      PushBytes(Kind::kBytes, TakeNumber(8));
      return true;
    default:
      return false;
  }
}

bool PickleDecoder::StepContainer(unsigned char code) {
  switch (code) {
    case '}':
      Push(Make(Kind::kMapping));
      return true;
    case ']':
      Push(Make(Kind::kList));
      return true;
    case ')':
      Push(Make(Kind::kTuple));
      return true;
    case 0x8f:
      Push(Make(Kind::kSet));
      return true;
    case 0x91:
      PushItems(Kind::kFrozenSet, PopToMark());
      return true;
    case 't':
      PushItems(Kind::kTuple, PopToMark());
      return true;
    case 'l':
      PushItems(Kind::kList, PopToMark());
      return true;
    case 'd': {
      const PickledItems items = PopToMark();
      Push(Make(Kind::kMapping));
      SetItems(items);
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87:
      PushItems(Kind::kTuple, PopCount(code - 0x84u));
      return true;
    case 'a':
      Extend(PopCount(1));
      return true;
    case 'e':
    case 0x90:
      Extend(PopToMark());
      return true;
    case 's':
      SetItems(PopCount(2));
      return true;
    case 'u':
      SetItems(PopToMark());
      return true;
    default:
      return false;
  }
}

bool PickleDecoder::StepStack(unsigned char code) {
  switch (code) {
    case '(':
      Cost(pickle_cost::kMark);
      marks_.push_back(stack_.size());
      return true;
    case '0':
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
      } else {
        Pop();
      }
      return true;
    case '1':
      PopToMark();
      return true;
    case '2':
      Push(Top());
      return true;
    case 0x94:
      Remember(memo_.size() + memo_beyond_.size());
      return true;
    case 'q':
    case 'r':
      Remember(TakeNumber(code == 'q' ? 1 : 4));
      return true;
    case 'h':
      Recall(TakeNumber(1));
      return true;
    case 'j':
      Recall(TakeNumber(4));
      return true;
    default:
      return false;
  }
}

bool PickleDecoder::StepObject(unsigned char code) {
  switch (code) {
    case 'c': {
      std::string name(TakeLine());
      name += '.';
      name += TakeLine();
      AddGlobal(std::move(name));
      return true;
    }
    case 0x93:
      AddGlobalOfStack();
      return true;
    case 0x81:
      AddObject(true);
      return true;
    case 'R':
      AddObject(false);
      return true;
    case 'b':
      SetState();
      return true;
    case 'Q':
      Push(Persistent(Pop()));
      return true;
    default:
      return false;
  }
}

std::string_view PickleDecoder::Take(std::uint64_t size) {
  const std::uint64_t left = data_.size() - at_;
  if (size > left) needed_ = CappedAdd(at_, size);
  if (left == 0 && size == 1) Corrupt("pickle ends too early, or pops an empty stack");
  if (size > left) Corrupt(StrCat("pickle has ", left, " bytes left, expected ", size));
  const std::string_view taken = data_.substr(at_, size);
  at_ += size;
  return taken;
}

std::uint64_t PickleDecoder::NumberOf(std::string_view bytes) {
  return Number(bytes, 0, bytes.size());
}

std::string_view PickleDecoder::CheckText(std::string_view bytes) const {
  if (!IsText(bytes, true)) Corrupt("string has malformed bytes, expected UTF-8");
  return bytes;
}

std::string_view PickleDecoder::TakeLine() {
  const std::size_t end = data_.substr(at_, kNameBytesMax).find('\n');
  if (end == data_.npos) {
    if (data_.size() - at_ < kNameBytesMax) needed_ = data_.size() + 1;
    Corrupt("a name has no end");
  }
  const std::string_view line = CheckText(data_.substr(at_, end));
  at_ += end + 1;
  return line;
}

}  // namespace sealpoint::internal::foreign
