#include "lib/oracle/machines.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

namespace mxfp4 {
namespace {

// "ARCH: NAME, NAME", the usual name first.
constexpr std::string_view kMachineTable = R"(
sm70: V100S, V100, Titan V, Volta
sm72: Jetson Xavier, Xavier
sm75: GTX 1660 Ti, GTX 1660, GTX 1650, Quadro RTX 8000, Quadro RTX 6000, Quadro RTX 5000,
  Quadro RTX 4000, T1000, T4, RTX 2080 Ti, RTX 2080, RTX 2070, RTX 2060, RTX 8000, Titan RTX,
  Turing
sm80: A100X, A30X, A100, A800, A30, Ampere
sm86: RTX A5500, RTX A4500, RTX A2000, RTX 3060 Ti, RTX 3070 Ti, RTX 3050, A40, A10, A10G, A16, A2,
  RTX A6000, A6000, RTX A5000, A5000, RTX A4000, A4000, RTX 3090, RTX 3090 Ti, RTX 3080,
  RTX 3080 Ti, RTX 3070, RTX 3060
sm87: Jetson Orin Nano, Jetson Orin NX, Orin NX, Jetson Orin, Orin, AGX Orin, Jetson AGX Orin,
  Orin Nano
sm89: RTX 5880 Ada, RTX 4500 Ada, RTX 2000 Ada, RTX 4060 Ti, L40S, L40, L20, L4, L2, RTX 6000 Ada,
  RTX 5000 Ada, RTX 4000 Ada, RTX 4090, RTX 4090 D, RTX 4080, RTX 4070, RTX 4070 Ti, RTX 4060, Ada,
  Ada Lovelace, Lovelace
sm90: H20-3e, H100, H200, H800, H20, GH200, Grace Hopper, Hopper
sm100: B200, GB200, B100, DGX B200, HGX B200, Grace Blackwell, Blackwell
sm103: B300, GB300, DGX B300, HGX B300, Blackwell Ultra, Grace Blackwell Ultra
sm110: Jetson T5000, Jetson T4000, T5000, Jetson Thor, Thor, AGX Thor, Jetson AGX Thor
sm120: RTX 6000 PRO, RTX 6000D, RTX PRO 6000D, RTX PRO 2000, RTX 5050, RTX 5090, RTX 5090 D,
  RTX 5080, RTX 5070 Ti, RTX 5070, RTX 5060 Ti, RTX 5060, RTX PRO 6000, RTX PRO 6000 Blackwell,
  RTX PRO 5000, RTX PRO 5000 Blackwell, RTX PRO 4500, RTX PRO 4500 Blackwell, RTX PRO 4000,
  RTX PRO 4000 Blackwell
sm121: Ascent GX10, GX10, DGX Spark, Spark, GB10
gfx906: MI50, MI60, Radeon VII
gfx908: MI100, CDNA
gfx90a: MI200, MI210, MI250, MI250X, CDNA2, CDNA 2
gfx942: MI300X, MI300A, MI300, MI308X, MI325X, CDNA3, CDNA 3
gfx950: MI350P, MI355X, MI350X, MI350, MI355, CDNA4, CDNA 4
gfx1030: RX 6900 XT, RX 6800 XT, RX 6800, PRO W6800
gfx1100: RX 7900 GRE, RX 7900 XTX, RX 7900 XT, PRO W7900, PRO W7800, W7900, W7800, RDNA3
gfx1101: RX 7800 XT, RX 7700 XT, PRO W7700
gfx1102: RX 7600
gfx1103: 780M
gfx1150: Strix Point, 890M
gfx1151: Ryzen AI Max+ PRO 395, Ryzen AI Max 395, Ryzen AI Max PRO 390, Ryzen AI Max 390,
  Ryzen AI Max PRO 385, Ryzen AI Max 385, 8050S, Strix Halo, 8060S, Ryzen AI Max+ 395
gfx1152: Krackan Point
gfx1153:
gfx1200: RX 9060 XT
gfx1201: RX 9070 GRE, RX 9070 XT, RX 9070, AI PRO R9700, R9700, RDNA4
gfx1250:
x86_64: amd64, x64, x86-64, EPYC, AMD EPYC, Xeon, Intel Xeon
x86_64-amx: AMX, Sapphire Rapids, Emerald Rapids, Granite Rapids, Diamond Rapids, SPR, EMR, GNR
x86_64-avx512: AVX512 BF16, Genoa, Bergamo, Siena, Turin, Venice, Zen 4, Zen 5, Zen 6, Cooper Lake
x86_noamx: Ice Lake, Cascade Lake, Skylake, Sierra Forest, Clearwater Forest, Milan, Rome, Naples,
  Zen 3, Zen 2
aarch64: arm64, Arm, Grace, Grace CPU, Vera, Graviton, Graviton2, Graviton3, Graviton4, Axion,
  Cobalt, Ampere Altra, AmpereOne, Neoverse
ppc64le: POWER9, POWER10, POWER11
s390x: z15, z16, z17
riscv64:
)";

// The words of a text in lower case. A word is of letters, digits and '.', ':', '+', with which
// capabilities and features are written.
std::vector<std::string> words_of(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    const auto byte = static_cast<unsigned char>(c);
    const bool kept = std::isalnum(byte) != 0 || c == '.' || c == ':' || c == '+';
    c = kept ? static_cast<char>(std::tolower(byte)) : ' ';
  }
  std::istringstream stream(plain);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string joined(std::span<const std::string> words) {
  std::string all;
  for (const std::string& word : words) all += word;
  return all;
}

std::vector<Machine> read_machines() {
  std::vector<Machine> machines;
  std::istringstream lines{std::string(kMachineTable)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    std::istringstream names(line);
    if (line.front() != ' ') {
      std::getline(names, machines.emplace_back().arch, ':');
    }
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      machines.back().names.push_back(name);
    }
  }
  return machines;
}

const Machine* by_arch(std::string_view arch) {
  const auto found = std::ranges::find(machines(), arch, &Machine::arch);
  return found == machines().end() ? nullptr : &*found;
}

const Machine* by_name(std::string_view name) {
  for (const Machine& machine : machines()) {
    for (const std::string& known : machine.names) {
      if (joined(words_of(known)) == name) return &machine;
    }
  }
  return nullptr;
}

// "sm90", "sm90a", "9.0" -> "sm90"; "gfx942:sramecc+" -> "gfx942".
std::string usual_arch(std::string word) {
  word = word.substr(0, word.find(':'));
  if (word.starts_with("gfx")) return word;
  if (word.starts_with("sm")) word.erase(0, 2);
  if (word.ends_with('a') || word.ends_with('f')) word.pop_back();
  std::erase(word, '.');
  return "sm" + word;
}

}  // namespace

std::span<const Machine> machines() {
  static const std::vector<Machine> kMachines = read_machines();
  return kMachines;
}

const Machine* find_machine(std::string_view text) {
  if (const Machine* exact = by_arch(text)) return exact;
  if (text.find(',') != std::string_view::npos) return nullptr;  // a list: of which machine?
  const std::vector<std::string> words = words_of(text);
  for (size_t count = words.size(); count > 0; --count) {
    for (size_t first = 0; first + count <= words.size(); ++first) {
      const std::string part = joined(std::span(words).subspan(first, count));
      const Machine* machine = by_name(part);
      if (machine == nullptr && count == words.size()) machine = by_arch(usual_arch(part));
      // "EPYC 9654": a model, of which the family's name does not say the features.
      if (machine != nullptr && (machine->arch != kOpenArch || count == words.size())) {
        return machine;
      }
    }
  }
  return nullptr;
}

std::string taken_arch(const Machine& machine, bool forced) {
  return machine.arch == kOpenArch && !forced ? "x86_64-avx512" : machine.arch;
}

std::vector<std::string> machine_words() {
  std::vector<std::string> words;
  for (const Machine& machine : machines()) {
    words.push_back(machine.arch);
    words.insert(words.end(), machine.names.begin(), machine.names.end());
  }
  return words;
}

}  // namespace mxfp4
