// One function of several lambdas, for std::visit.
#pragma once

namespace mxfp4 {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace mxfp4
