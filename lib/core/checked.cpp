#include "lib/core/checked.hpp"

#include "lib/core/error.hpp"

namespace mxfp4 {

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) {
    throw Error::input("a product of sizes overflows 64 bits");
  }
  return product;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) {
    throw Error::input("a sum of sizes overflows 64 bits");
  }
  return sum;
}

int64_t round_up(int64_t a, int64_t b) { return checked_mul(ceil_div(a, b), b); }

}  // namespace mxfp4
