// The one exception type of the project. An Error is thrown where a fault is detected and given its
// place by the callers that know it. main() catches it and turns its kind into the exit code.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mxfp4 {

enum class ErrorKind {
  kUsage,        // the command line contradicts itself
  kInput,        // a source file is missing, malformed, truncated or of an unsupported form
  kUnsupported,  // the oracle refuses the deployment, or no layout exists for it
  kOutput,       // the output exists, does not fit, or could not be written
  kInternal,     // a bug of this program
};

// Usage:  throw Error::input("[3] does not match 16 bytes").at_key("shape").in_file(path);
// what() is "<outermost place>: ...: <innermost place>: <message>". Code that treats
// errors differently asks kind(), key() and file(), never the text.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);

  static Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }
  static Error input(std::string message) { return {ErrorKind::kInput, std::move(message)}; }
  static Error unsupported(std::string message) {
    return {ErrorKind::kUnsupported, std::move(message)};
  }
  static Error output(std::string message) { return {ErrorKind::kOutput, std::move(message)}; }
  static Error internal(std::string message) { return {ErrorKind::kInternal, std::move(message)}; }

  // Puts `place` in front of the places that were added before.
  Error& add_context(std::string_view place);
  // The same for the key, flag or tensor that the fault lies in; key() is the innermost.
  Error& at_key(std::string_view key);
  // The same for the file; file() is the innermost.
  Error& in_file(std::string_view file);
  // The obvious next step in one line, printed after the error.
  Error& hint(std::string text);
  // Marks a file that exists and that the system does not let us read; its content may be good.
  Error& unreadable();
  // The exception that the reference raises for this refusal ("ValueError", ...); empty for the
  // tool's own errors.
  Error& reference_type(std::string type);

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& hint_text() const noexcept { return hint_; }
  [[nodiscard]] bool is_unreadable() const noexcept { return unreadable_; }
  [[nodiscard]] const std::string& reference_type_name() const noexcept { return reference_type_; }
  // "arch", "--level", "model.layers.0.mlp.experts.down_proj_scales"; empty: not said.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  // The path as messages have it; empty: not said.
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  // The message without its places.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string text_;  // the message behind its places
  std::string key_;
  std::string file_;
  std::string hint_;
  std::string reference_type_;
  bool unreadable_ = false;
};

// Runs `body`; an Error that leaves it gets `place` in front.
template <class Body>
auto in_context(std::string_view place, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    error.add_context(place);
    throw;
  }
}

// The same for a file. An Error that names another one, such as a file of a checkpoint, stays as it
// is, and so does one about the command line.
template <class Body>
auto in_file(std::string_view file, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    if (error.file().empty() && error.kind() != ErrorKind::kUsage) error.in_file(file);
    throw;
  }
}

}  // namespace mxfp4
