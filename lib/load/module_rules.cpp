// The matching of Quark (quark/utils.py): fnmatch, or a part of the name.
#include "lib/load/module_rules.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <string>

namespace mxfp4 {

const ModuleQuantization* find_rule(const Quantization& quantization, std::string_view module) {
  const auto matches = [path = std::string(module)](const ModuleQuantization& rule) {
    // A pattern without a star names modules, and those within stand for the whole.
    if (rule.pattern.find('*') == std::string::npos) {
      return rule.pattern.find(path) != std::string::npos;
    }
    return fnmatch(rule.pattern.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
  };
  const auto found = std::ranges::find_if(quantization.rules, matches);
  return found == quantization.rules.end() ? nullptr : &*found;
}

}  // namespace mxfp4
