#include "lib/core/error.hpp"

namespace mxfp4 {

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

Error& Error::add_context(std::string_view place) {
  message_.insert(0, ": ").insert(0, place);
  return *this;
}

Error& Error::hint(std::string text) {
  hint_ = std::move(text);
  return *this;
}

Error& Error::unreadable() {
  unreadable_ = true;
  return *this;
}

Error& Error::reference_type(std::string type) {
  reference_type_ = std::move(type);
  return *this;
}

}  // namespace mxfp4
