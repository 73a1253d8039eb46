#include "lib/core/error.hpp"

namespace mxfp4 {

namespace {

// The flag that a message begins with, "--level: ...", "--rank 3: ..."; empty for other messages.
std::string_view leading_flag(std::string_view message) {
  if (!message.starts_with("--")) return "";
  return message.substr(0, message.find_first_of(":, "));
}

}  // namespace

Error::Error(ErrorKind kind, std::string message)
    : kind_(kind), message_(std::move(message)), text_(message_) {
  if (kind_ == ErrorKind::kUsage) key_ = leading_flag(message_);
}

Error& Error::add_context(std::string_view place) {
  text_.insert(0, ": ").insert(0, place);
  return *this;
}

Error& Error::at_key(std::string_view key) {
  if (key_.empty()) key_ = key;
  return add_context(key);
}

Error& Error::in_file(std::string_view file) {
  if (file_.empty()) file_ = file;
  return add_context(file);
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
