#include "lib/oracle/machines.hpp"

#include <algorithm>
#include <cctype>

#include "lib/core/text.hpp"

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

std::string plain(std::string_view name) {
  std::string all;
  for (const std::string& word : words_of(name)) all += word;
  return all;
}

const Machine* by_arch(std::string_view arch) {
  const auto found = std::ranges::find(machines(), arch, &Machine::arch);
  return found == machines().end() ? nullptr : &*found;
}

const Machine* by_name(std::string_view name) {
  for (const Machine& machine : machines()) {
    for (const std::string_view known : machine.names) {
      if (plain(known) == name) return &machine;
    }
  }
  return nullptr;
}

// "sm90", "sm90a", "compute90", "9.0", "90" -> "sm90"; "gfx942:sramecc+" -> "gfx942".
std::string usual_arch(std::string_view word) {
  word = word.substr(0, word.find(':'));
  if (word.starts_with("gfx")) return std::string(word);
  for (const std::string_view prefix : {"sm", "compute"}) {
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

// The machine whose name some of the words are, one after the other: of "NVIDIA H100 80GB HBM3"
// the second. The longest name counts; null where a machine of another arch is named beside it.
const Machine* within(const std::vector<std::string>& words) {
  struct Found {
    const Machine* machine;
    size_t first;
    size_t last;
  };
  std::vector<Found> found;
  for (size_t first = 0; first < words.size(); ++first) {
    std::string name;
    for (size_t last = first; last < words.size(); ++last) {
      name += words[last];
      const Machine* machine = by_name(name);
      if (machine != nullptr) found.push_back({machine, first, last});
    }
  }
  const auto longest =
      std::ranges::max_element(found, {}, [](const Found& one) { return one.last - one.first; });
  if (longest == found.end()) return nullptr;
  const bool other = std::ranges::any_of(found, [&](const Found& one) {
    const bool inside = one.first >= longest->first && one.last <= longest->last;
    return !inside && one.machine != longest->machine;
  });
  // "EPYC 9654": a model, of which the family's name does not say the features.
  const bool model = !longest->machine->least.empty() && words.size() > 1;
  return other || model ? nullptr : longest->machine;
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
       {"amd64", "x64", "x86-64", "EPYC", "AMD EPYC", "Xeon", "Intel Xeon"},
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
       {"arm64", "Arm", "Grace", "Grace CPU", "Vera", "Graviton", "Graviton2", "Graviton3",
        "Graviton4", "Axion", "Cobalt", "Ampere Altra", "AmpereOne", "Neoverse"}},
      {"ppc64le", kCpu, {"POWER9", "POWER10", "POWER11"}},
      {"s390x", kCpu, {"z15", "z16", "z17"}},
      {"riscv64", kCpu},
  };
  return kMachines;
}

const Machine* find_machine(std::string_view text) {
  if (const Machine* exact = by_arch(text)) return exact;
  const std::string name = plain(text);
  if (const Machine* named = by_name(name)) return named;
  if (const Machine* known = by_arch(usual_arch(name))) return known;
  return within(words_of(text));
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
