// A layout turns a loaded layer into the tensors that one backend's kernel reads: one file each in
// this folder, one row each in a revision's table. A `Layout` value is the layout's specification:
// shapes, formula, preconditions and source are in its strings and nowhere else, because the man
// page and `list layouts` print them. The comment at the head of a layout's file says what the
// strings do not: the idea, a worked example, oddities of the reference. Which backends take a
// layout, in which releases, follows from the rules (`list layouts`, `list backends`).
//
// Symbols in the strings, for one expert: E experts, H hidden size, I intermediate size, after
// padding; a matrix has N rows and K columns (w13: 2I and H, w2: H and I), C = K/2 bytes or S =
// K/32 scales a row. x[i] is bit i of x, `/` is integer division, up(x, m) is x rounded up to a
// multiple of m.
//
// A formula is evaluated by a test (tests/cli/formulas.py), so each line is one of these, in this order:
//   w13 row g*I+i -> 2i+g        where loaded rows go first; "row 2i+g takes row g*I+i" says the same
//   scale (n,s): offset 4*n + s  where an element goes: an offset, "row A, column B", [A][B] or
//                                (A, B, ...) in the output's shape, "nibble P of word W"
//   scale: s + 6                 what a value becomes; P = k%2 defines a name
//   as triton/hopper             all lines of another layout, "scale (n,s): as ..." those of scales;
//                                lines behind it replace its own
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// Which of LayoutParameters a layout reads. The others never reach it.
struct ParameterUse {
  bool family = false;
  bool params_dtype = false;
  bool humming_input_dtype = false;
};

struct Layout {
  std::string id;
  std::string outputs_doc;  // "NAME[, NAME]: DTYPE [SHAPE][, [SHAPE]]" and notes, a line each
  std::string formula;      // the index formula, a line each
  std::string preconditions;
  std::string source;            // project, version, function
  std::string kernel_library{};  // "flashinfer 0.6.11.post2" where bytes depend on it, or empty
  // The outputs for a layer. Throws Error::unsupported when a precondition does not hold, naming
  // it.
  std::function<std::vector<Output>(const LayoutInput&)> outputs;
  // Checks that depend on the data of one slot, such as a largest scale; may be null. Given one
  // granule's loaded bytes of `slot`; throws Error::unsupported, or returns a warning ("" for
  // none). Always "" for weights: there is no wrong e2m1 code.
  std::function<std::string(const LayoutInput&, Slot, ConstBytes granule)> check_data{};
  // Whether check_data throws for some block scales, so that a decision has to read them.
  bool refuses_scales = false;
  ParameterUse reads{};
};

}  // namespace mxfp4
