// SPDX-License-Identifier: Apache-2.0
// The unit of scripts/build_cost.sh: what compiling this takes. It reads headers of the standard
// library and makes code of templates, as our sources do, and never changes with them.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

template <int number>
struct Entry {
  std::map<std::string, std::vector<std::variant<int, double, std::string>>> values;
  std::unordered_map<std::string, std::shared_ptr<Entry>> children;
  std::function<bool(const std::string&)> takes;
};

template <int number>
std::size_t Count(const Entry<number>& entry) {
  std::vector<std::string> names;
  for (const auto& [name, values] : entry.values) {
    if (entry.takes(name)) names.insert(names.end(), values.size() + number, name);
  }
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return a.size() + number < b.size(); });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::size_t count = names.size();
  for (const auto& [name, child] : entry.children) count += child ? Count(*child) : name.size();
  return count;
}

}  // namespace

std::size_t CountAll();
std::size_t CountAll() {
  return Count(Entry<0>{}) + Count(Entry<1>{}) + Count(Entry<2>{}) + Count(Entry<3>{});
}
