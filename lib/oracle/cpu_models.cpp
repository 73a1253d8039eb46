#include "lib/oracle/cpu_models.hpp"

#include <algorithm>
#include <array>

#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kAmx = "x86_64-amx";
constexpr std::string_view kAvx512 = "x86_64-avx512";
constexpr std::string_view kPlain = "x86_noamx";

bool has_word(std::span<const std::string> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

template <size_t N>
bool has_family(std::span<const std::string> words, const std::array<std::string_view, N>& names) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::any_of(names, [&](auto name) { return word.starts_with(name); });
  });
}

// The number of "4th" and "5th"; 0 where no word is one.
int generation_said(std::span<const std::string> words) {
  for (const std::string& word : words) {
    const bool ordinal = word.size() == 3 && is_digit(word[0]) &&
                         (word.ends_with("st") || word.ends_with("nd") || word.ends_with("rd") ||
                          word.ends_with("th"));
    if (ordinal) return word[0] - '0';
  }
  return 0;
}

// EPYC's models and series have four signs and end with their generation: 7763, 9654, 9R14, 9005.
std::string_view epyc_arch(std::span<const std::string> words) {
  int generation = generation_said(words);
  for (const std::string& word : words) {
    if (word.size() >= 4 && is_digit(word[0]) && is_digit(word[2]) && is_digit(word[3])) {
      generation = word[3] - '0';
    }
  }
  if (generation == 0) return "";
  return generation >= 4 ? kAvx512 : kPlain;
}

bool is_model(const std::string& word) {
  return word.size() >= 4 && std::ranges::all_of(std::string_view(word).substr(0, 4), is_digit);
}

// Xeon Scalable: the second digit is the generation, 8380, 8480C. Xeon 6: P or E behind the digits
// names the kind of cores, but for the small 63xx, which have no AMX. Xeon W: "w9-3495X".
std::string_view xeon_arch(std::span<const std::string> words) {
  const bool scalable = has_word(words, "platinum") || has_word(words, "gold") ||
                        has_word(words, "silver") || has_word(words, "bronze");
  const bool workstation = has_word(words, "w3") || has_word(words, "w5") ||
                           has_word(words, "w7") || has_word(words, "w9");
  for (const std::string& word : words) {
    if (!is_model(word)) continue;
    const char generation = word[1];
    if (workstation) return kAmx;
    if (scalable && (generation == '4' || generation == '5')) return kAmx;
    if (scalable && generation >= '1' && generation <= '3') {
      return generation == '3' && word[4] == 'h' ? kAvx512 : kPlain;
    }
    if (scalable || word.size() != 5 || word[0] != '6') continue;
    if (word[4] == 'e' || generation == '3') return kPlain;
    if (word[4] == 'p') return kAmx;
  }
  const int said = generation_said(words);
  return said == 4 || said == 5 ? kAmx : "";
}

}  // namespace

std::string_view arch_of_cpu(std::span<const std::string> words) {
  constexpr std::array<std::string_view, 1> kEpyc = {"epyc"};
  constexpr std::array<std::string_view, 1> kXeon = {"xeon"};
  constexpr std::array<std::string_view, 2> kOthers = {"ryzen", "threadripper"};
  constexpr std::array<std::string_view, 7> kArm = {"graviton", "altra",     "cobalt", "axion",
                                                    "neoverse", "ampereone", "cortex"};
  constexpr std::string_view kOpen = "x86_64";
  if (has_family(words, kEpyc)) {
    const std::string_view arch = epyc_arch(words);
    return arch.empty() ? kOpen : arch;
  }
  if (has_family(words, kXeon)) {
    const std::string_view arch = xeon_arch(words);
    return arch.empty() ? kOpen : arch;
  }
  if (has_family(words, kOthers)) return kOpen;
  return has_family(words, kArm) ? "aarch64" : "";
}

}  // namespace mxfp4
