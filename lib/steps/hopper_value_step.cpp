#include "lib/steps/hopper_value_step.hpp"

#include "lib/kernels/hopper_value.hpp"

namespace mxfp4 {

Custom hopper_value_step(int64_t rows, int64_t columns) {
  return {rows * columns, rows * columns,
          [=](ConstBytes in, MutableBytes out) {
            kernels::hopper_value_pack(rows, columns, in.data(), out.data());
          },
          [=](ConstBytes in, MutableBytes out) {
            kernels::hopper_value_unpack(rows, columns, in.data(), out.data());
          }};
}

}  // namespace mxfp4
