#include "lib/steps/hopper_value_step.hpp"

#include "lib/kernels/hopper_value.hpp"

namespace mxfp4 {

Custom hopper_value_step(int64_t rows, int64_t columns) {
  const auto rows_of = [columns](ConstBytes bytes) {
    return columns == 0 ? 0 : static_cast<int64_t>(bytes.size()) / columns;
  };
  return {.name = "hopper value swizzle",
          .in_bytes = rows * columns,
          .out_bytes = rows * columns,
          .piece_bytes = 16 * columns,
          .forward =
              [=](ConstBytes in, bool streaming, MutableBytes out) {
                kernels::hopper_value_pack(rows_of(in), columns, in.data(), streaming, out.data());
              },
          .inverse =
              [=](ConstBytes in, bool streaming, MutableBytes out) {
                kernels::hopper_value_unpack(rows_of(in), columns, in.data(), streaming,
                                             out.data());
              }};
}

}  // namespace mxfp4
