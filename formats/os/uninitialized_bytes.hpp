// Byte vectors whose new elements have unspecified values. That saves the time of clearing, and
// memory: if a file's wrong size made a vector large, only the pages that are written are resident.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace mxfp4 {

template <class T>
struct Uninitialized : std::allocator<T> {
  template <class U>
  struct rebind {  // NOLINT(readability-identifier-naming): the standard's name
    using other = Uninitialized<U>;
  };
  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
};

using UninitializedBytes = std::vector<std::byte, Uninitialized<std::byte>>;

}  // namespace mxfp4
