// SPDX-License-Identifier: Apache-2.0
#include "python/src/attributes.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "python/src/status.h"

namespace sealpoint::python {
namespace {

namespace nb = nanobind;

template <typename T>
AttributeValue ListOf(nb::handle values) {
  std::vector<T> list;
  for (const nb::handle value : values) list.push_back(nb::cast<T>(value));
  return list;
}

AttributeValue ValueOf(nb::handle value) {
  const bool is_list = nb::isinstance<nb::list>(value);
  // The elements of a list have one type; an empty list is one of strings.
  const nb::object one = !is_list              ? nb::borrow(value)
                         : nb::len(value) != 0 ? nb::object(value[0])
                                               : nb::object(nb::str(""));
  if (nb::isinstance<nb::bool_>(one)) {
    return is_list ? ListOf<bool>(value) : AttributeValue(nb::cast<bool>(value));
  }
  if (nb::isinstance<nb::int_>(one)) {
    return is_list ? ListOf<std::int64_t>(value) : AttributeValue(nb::cast<std::int64_t>(value));
  }
  if (nb::isinstance<nb::float_>(one)) {
    return is_list ? ListOf<double>(value) : AttributeValue(nb::cast<double>(value));
  }
  return is_list ? ListOf<std::string>(value) : AttributeValue(nb::cast<std::string>(value));
}

template <typename T>
nb::object ObjectOf(const T& value) {
  return nb::cast(value);
}
template <typename T>
nb::object ObjectOf(const std::vector<T>& values) {
  nb::list list;
  for (const auto& value : values) list.append(nb::cast(T(value)));
  return std::move(list);
}

}  // namespace

Attributes AttributesOf(const AttributesDict& values) {
  Attributes::Values all;
  for (const auto& [name, value] : values) {
    all.emplace(nb::cast<std::string>(name), ValueOf(value));
  }
  return Value(Attributes::Make(all));
}

AttributesDict DictOf(const Attributes& attributes) {
  nb::dict values;
  for (const auto& [name, value] : attributes.values()) {
    values[nb::cast(name)] = std::visit([](const auto& held) { return ObjectOf(held); }, value);
  }
  return AttributesDict(std::move(values));
}

}  // namespace sealpoint::python
