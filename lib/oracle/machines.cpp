#include "lib/oracle/machines.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/core/text.hpp"
#include "lib/oracle/cpu_models.hpp"

namespace mxfp4 {
namespace {

constexpr Platform kCuda = Platform::kCuda;
constexpr Platform kRocm = Platform::kRocm;
constexpr Platform kCpu = Platform::kCpu;

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// The words of a text in lower case. A word is of letters, digits and '.', ':', '+', with which
// capabilities and features are written.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '.' || c == ':' || c == '+') {
      words.back() += static_cast<char>(std::tolower(byte));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Whether the word tells how a device is mounted, cooled, sold or equipped, and not which one
// it is.
bool is_decoration(std::string_view word) {
  constexpr std::array kWords = {
      "nvidia",    "amd",     "intel",   "tesla",     "geforce", "quadro",      "instinct",
      "radeon",    "gpu",     "gpus",    "pcie",      "nvl",     "oam",         "generation",
      "server",    "edition", "maxq",    "max",       "q",       "workstation", "founders",
      "super",     "tensor",  "systems", "core",      "node",    "dgx",         "hgx",
      "superchip", "laptop",  "station", "developer", "kit"};
  if (std::ranges::find(kWords, word) != kWords.end()) return true;
  // "8x", "144G", "480GB"; with four digits before an X it is a CPU's model: "7773X".
  for (const std::string_view unit : {"x", "g", "gb"}) {
    if (!word.ends_with(unit)) continue;
    const std::string_view number = word.substr(0, word.size() - unit.size());
    if (all_digits(number) && (unit == "gb" || number.size() <= 3)) return true;
  }
  for (const std::string_view stem : {"sxm", "hbm", "nvl"}) {
    if (word.starts_with(stem) && word.size() <= stem.size() + 2) return true;
  }
  return false;
}

std::string joined(const std::vector<std::string>& words, bool decorated) {
  std::string all;
  for (const std::string& word : words) {
    if (decorated || !is_decoration(word)) all += word;
  }
  return all;
}

std::string plain(std::string_view name) { return joined(words_of(name), true); }

const Machine* by_arch(std::string_view arch) {
  const auto found = std::ranges::find(machines(), arch, &Machine::arch);
  return found == machines().end() ? nullptr : &*found;
}

const Machine* by_name(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const Machine& machine : machines()) {
    for (const std::string_view known : machine.names) {
      if (plain(known) == name) return &machine;
    }
  }
  return nullptr;
}

// "sm90", "sm90a", "compute90", "cc9.0", "9.0", "90" -> "sm90"; "gfx942:sramecc+" -> "gfx942".
std::string usual_arch(std::string_view word) {
  word = word.substr(0, word.find(':'));
  if (word.starts_with("gfx")) return std::string(word);
  for (const std::string_view prefix : {"sm", "compute", "cc", "capability"}) {
    if (!word.starts_with(prefix)) continue;
    word.remove_prefix(prefix.size());
    break;
  }
  if (word.size() > 2 && (word.ends_with('a') || word.ends_with('f'))) word.remove_suffix(1);
  std::string digits(word);
  const size_t dot = digits.find('.');
  if (dot != std::string::npos && dot + 2 == digits.size()) digits.erase(dot, 1);
  if (!all_digits(digits) || digits.size() < 2 || digits.size() > 3) return "";
  return "sm" + digits;
}

// Signs between a count and its machine: "8x H100", "H100 * 8"; the last is the
// multiplication sign.
constexpr std::array<std::string_view, 4> kTimes = {"x", "X", "*", "\xc3\x97"};

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// A machine's name and how many of them the text says.
struct CountedName {
  std::string_view name;
  std::string_view count;  // digits; empty: it says none
};

CountedName split_count(std::string_view text) {
  text = without_blanks(text);
  const size_t first = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view rest = without_blanks(text.substr(first));
  if (first > 0 && !rest.empty()) {
    for (const std::string_view times : kTimes) {
      if (rest.starts_with(times))
        return {without_blanks(rest.substr(times.size())), text.substr(0, first)};
    }
    return {rest, text.substr(0, first)};
  }
  const size_t last = text.find_last_not_of("0123456789") + 1;
  rest = without_blanks(text.substr(0, last));
  for (const std::string_view times : kTimes) {
    if (last == text.size() || !rest.ends_with(times)) continue;
    rest.remove_suffix(times.size());
    return {without_blanks(rest), text.substr(last)};
  }
  return {text, ""};
}

// The words with which NVIDIA names a generation, behind "Grace" where a CPU of that name is beside
// the GPU, and the first and the last of its archs: 90 for sm90.
struct Generation {
  std::string_view name;
  int first;
  int last;
};
constexpr std::array<Generation, 11> kGenerations = {{{"volta", 70, 72},
                                                      {"turing", 75, 75},
                                                      {"ampere", 80, 87},
                                                      {"ada", 89, 89},
                                                      {"adalovelace", 89, 89},
                                                      {"hopper", 90, 90},
                                                      {"gracehopper", 90, 90},
                                                      {"blackwell", 100, 121},
                                                      {"blackwellultra", 103, 103},
                                                      {"graceblackwell", 100, 121},
                                                      {"graceblackwellultra", 103, 103}}};

// The GPU in "rtxpro6000blackwell" or "gb10graceblackwell": a name that ends with its generation.
const Machine* before_generation(std::string_view name) {
  for (const Generation& generation : kGenerations) {
    if (!name.ends_with(generation.name)) continue;
    const Machine* named = by_name(name.substr(0, name.size() - generation.name.size()));
    if (named == nullptr || named->platform != kCuda) continue;
    const int number = std::stoi(std::string(named->arch.substr(2)));
    if (number >= generation.first && number <= generation.last) return named;
  }
  return nullptr;
}

const Machine* find_one(std::string_view text) {
  if (const Machine* exact = by_arch(text)) return exact;
  const std::vector<std::string> words = words_of(text);
  for (const bool decorated : {true, false}) {
    const std::string name = joined(words, decorated);
    if (const Machine* named = by_name(name)) return named;
    if (const Machine* known = by_arch(usual_arch(name))) return known;
    if (const Machine* named = before_generation(name)) return named;
  }
  return nullptr;
}

// The CPU whose whole name some of the words are, one after the other; takes these words away.
const Machine* take_cpu_name(std::vector<std::string>& words) {
  constexpr size_t kMost = 2;  // words of a name
  for (size_t count = kMost; count > 0; --count) {
    for (size_t at = 0; at + count <= words.size(); ++at) {
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last = first + static_cast<std::ptrdiff_t>(count);
      const Machine* named = by_name(joined({first, last}, true));
      if (named == nullptr || named->platform != kCpu || !named->least.empty()) continue;
      words.erase(first, last);
      return named;
    }
  }
  return nullptr;
}

// A CPU that is named with other words beside: "AMD EPYC Turin 9755", "Intel Xeon Platinum 8480C",
// "Graviton4". A code name counts before a model number, a model number before the family. Null for
// others, and where another machine is named beside it.
const Machine* by_cpu_words(std::string_view text) {
  std::vector<std::string> words = words_of(text);
  const Machine* named = take_cpu_name(words);
  // Digits are a CPU's model.
  const auto other = [](const std::string& word) {
    if (all_digits(word)) return false;
    const Machine* machine = find_one(word);
    return word == "ai" || (machine != nullptr && machine->platform != kCpu);
  };
  if (std::ranges::any_of(words, other)) return nullptr;
  return named != nullptr ? named : by_arch(arch_of_cpu(words));
}

}  // namespace

std::span<const Machine> machines() {
  static const std::vector<Machine> kMachines = {
      {"sm70", kCuda, {"V100S", "V100", "Titan V", "Volta"}},
      {"sm72", kCuda, {"Jetson Xavier", "Xavier"}},
      {"sm75",
       kCuda,
       {"GTX 1660 Ti", "GTX 1660", "GTX 1650", "Quadro RTX 8000", "Quadro RTX 6000",
        "Quadro RTX 5000", "Quadro RTX 4000", "T1000", "T4", "RTX 2080 Ti", "RTX 2080", "RTX 2070",
        "RTX 2060", "RTX 8000", "Titan RTX", "Turing"}},
      {"sm80", kCuda, {"A100X", "A30X", "A100", "A800", "A30", "Ampere"}},
      {"sm86", kCuda, {"RTX A5500",   "RTX A4500", "RTX A2000", "RTX 3060 Ti", "RTX 3070 Ti",
                       "RTX 3050",    "A40",       "A10",       "A10G",        "A16",
                       "A2",          "RTX A6000", "A6000",     "RTX A5000",   "A5000",
                       "RTX A4000",   "A4000",     "RTX 3090",  "RTX 3090 Ti", "RTX 3080",
                       "RTX 3080 Ti", "RTX 3070",  "RTX 3060"}},
      {"sm87",
       kCuda,
       {"Jetson Orin Nano", "Jetson Orin NX", "Orin NX", "Jetson Orin", "Orin", "AGX Orin",
        "Jetson AGX Orin", "Orin Nano"}},
      {"sm89", kCuda, {"RTX 5880 Ada", "RTX 4500 Ada", "RTX 2000 Ada", "RTX 4060 Ti",
                       "L40S",         "L40",          "L20",          "L4",
                       "L2",           "RTX 6000 Ada", "RTX 5000 Ada", "RTX 4000 Ada",
                       "RTX 4090",     "RTX 4090 D",   "RTX 4080",     "RTX 4070",
                       "RTX 4070 Ti",  "RTX 4060",     "Ada",          "Ada Lovelace",
                       "Lovelace"}},
      {"sm90", kCuda, {"H20-3e", "H100", "H200", "H800", "H20", "GH200", "Grace Hopper", "Hopper"}},
      {"sm100",
       kCuda,
       {"B200", "GB200", "B100", "DGX B200", "HGX B200", "Grace Blackwell", "Blackwell"}},
      {"sm103",
       kCuda,
       {"B300", "GB300", "DGX B300", "HGX B300", "Blackwell Ultra", "Grace Blackwell Ultra"}},
      {"sm110",
       kCuda,
       {"Jetson T5000", "Jetson T4000", "T5000", "Jetson Thor", "Thor", "AGX Thor",
        "Jetson AGX Thor"}},
      {"sm120", kCuda, {"RTX 6000 PRO",  "RTX 6000D",
                        "RTX PRO 6000D", "RTX PRO 2000",
                        "RTX 5050",      "RTX 5090",
                        "RTX 5090 D",    "RTX 5080",
                        "RTX 5070 Ti",   "RTX 5070",
                        "RTX 5060 Ti",   "RTX 5060",
                        "RTX PRO 6000",  "RTX PRO 6000 Blackwell",
                        "RTX PRO 5000",  "RTX PRO 5000 Blackwell",
                        "RTX PRO 4500",  "RTX PRO 4500 Blackwell",
                        "RTX PRO 4000",  "RTX PRO 4000 Blackwell"}},
      {"sm121", kCuda, {"Ascent GX10", "GX10", "DGX Spark", "Spark", "GB10"}},
      {"gfx906", kRocm, {"MI50", "MI60", "Radeon VII"}},
      {"gfx908", kRocm, {"MI100", "CDNA"}},
      {"gfx90a", kRocm, {"MI200", "MI210", "MI250", "MI250X", "CDNA2", "CDNA 2"}},
      {"gfx942", kRocm, {"MI300X", "MI300A", "MI300", "MI308X", "MI325X", "CDNA3", "CDNA 3"}},
      {"gfx950", kRocm, {"MI350P", "MI355X", "MI350X", "MI350", "MI355", "CDNA4", "CDNA 4"}},
      {"gfx1030", kRocm, {"RX 6900 XT", "RX 6800 XT", "RX 6800", "PRO W6800"}},
      {"gfx1100",
       kRocm,
       {"RX 7900 GRE", "RX 7900 XTX", "RX 7900 XT", "PRO W7900", "PRO W7800", "W7900", "W7800",
        "RDNA3"}},
      {"gfx1101", kRocm, {"RX 7800 XT", "RX 7700 XT", "PRO W7700"}},
      {"gfx1102", kRocm, {"RX 7600"}},
      {"gfx1103", kRocm, {"780M"}},
      {"gfx1150", kRocm, {"Strix Point", "890M"}},
      {"gfx1151",
       kRocm,
       {"Ryzen AI Max+ PRO 395", "Ryzen AI Max 395", "Ryzen AI Max PRO 390", "Ryzen AI Max 390",
        "Ryzen AI Max PRO 385", "Ryzen AI Max 385", "8050S", "Strix Halo", "8060S",
        "Ryzen AI Max+ 395"}},
      {"gfx1152", kRocm, {"Krackan Point"}},
      {"gfx1153", kRocm},
      {"gfx1200", kRocm, {"RX 9060 XT"}},
      {"gfx1201",
       kRocm,
       {"RX 9070 GRE", "RX 9070 XT", "RX 9070", "AI PRO R9700", "R9700", "RDNA4"}},
      {"gfx1250", kRocm},
      {"x86_64",
       kCpu,
       {"amd64", "x64", "x86-64", "EPYC", "Xeon"},
       "x86_64-avx512",
       "--arch x86_64-amx if it has AMX"},
      {"x86_64-amx",
       kCpu,
       {"AMX", "Sapphire Rapids", "Emerald Rapids", "Granite Rapids", "Diamond Rapids", "SPR",
        "EMR", "GNR"}},
      {"x86_64-avx512",
       kCpu,
       {"AVX512 BF16", "Genoa", "Bergamo", "Siena", "Turin", "Venice", "Zen 4", "Zen 5", "Zen 6",
        "Cooper Lake"}},
      {"x86_noamx",
       kCpu,
       {"Ice Lake", "Cascade Lake", "Skylake", "Sierra Forest", "Clearwater Forest", "Milan",
        "Rome", "Naples", "Zen 3", "Zen 2"}},
      {"aarch64",
       kCpu,
       {"arm64", "Arm", "Grace", "Grace CPU", "Vera", "Graviton", "Axion", "Cobalt", "Ampere Altra",
        "AmpereOne", "Neoverse"}},
      {"ppc64le", kCpu, {"POWER9", "POWER10", "POWER11"}},
      {"s390x", kCpu, {"z15", "z16", "z17"}},
      {"riscv64", kCpu},
  };
  return kMachines;
}

const Machine* find_machine(std::string_view text) {
  if (const Machine* one = find_one(text)) return one;
  const CountedName counted = split_count(text);
  if (const Machine* one = counted.count.empty() ? nullptr : find_one(counted.name)) return one;
  return by_cpu_words(text);
}

std::string_view machine_count(std::string_view text) {
  const CountedName counted = split_count(text);
  const Machine* machine = counted.count.empty() ? nullptr : find_one(counted.name);
  if (machine == nullptr) return "";
  // "7900 XT" is a name and holds no count.
  return by_name(plain(text)) == nullptr ? counted.count : "";
}

std::vector<std::string> machine_words() {
  std::vector<std::string> words;
  for (const Machine& machine : machines()) {
    words.emplace_back(machine.arch);
    for (const std::string_view name : machine.names) words.emplace_back(name);
  }
  return words;
}

}  // namespace mxfp4
