// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FUZZ_SUPPORT_PICKLE_PARTS_H_
#define SEALPOINT_FUZZ_SUPPORT_PICKLE_PARTS_H_

#include <cstdint>
#include <string>

// Parts of pickles of protocol 2: each leaves one value on the stack.

namespace sealpoint::fuzz {

inline std::string Number(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> 8 * i));
  return bytes;
}
inline std::string Int(std::uint64_t value) { return "J" + Number(value, 4); }
inline std::string Text(const std::string& text) { return "X" + Number(text.size(), 4) + text; }
inline std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string Tuple(const std::string& items) { return "(" + items + "t"; }
inline std::string List(const std::string& items) { return "](" + items + "e"; }
inline std::string Mapping(const std::string& pairs) { return "}(" + pairs + "u"; }
inline std::string Call(const std::string& function, const std::string& args) {
  return function + Tuple(args) + "R";
}
inline std::string Ordered(const std::string& pairs) {
  return Call(Global("collections", "OrderedDict"), "") + "(" + pairs + "u";
}
inline std::string Pickle(const std::string& value) { return "\x80\x02" + value + "."; }

inline std::string Tensor(const std::string& storage, const std::string& key, unsigned count,
                          const std::string& shape, const std::string& strides) {
  const std::string id =
      Text("storage") + Global("torch", storage) + Text(key) + Text("cpu") + Int(count);
  return Call(Global("torch._utils", "_rebuild_tensor_v2"),
              Tuple(id) + "Q" + Int(0) + Tuple(shape) + Tuple(strides) + "\x89" + Ordered(""));
}

// An object of a dataclass of the metadata of DCP.
inline std::string Described(const std::string& name, const std::string& members) {
  return Global("torch.distributed.checkpoint.metadata", name) + ")\x81" + Mapping(members) + "b";
}

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_PICKLE_PARTS_H_
