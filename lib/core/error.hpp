// The one exception type of the project. Thrown where a fault is detected, given its place by the
// callers that know it, caught once in main, where its kind becomes the exit code.
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

// Usage:  throw Error::input("shape [3] does not match 16 bytes").hint("was the file truncated?");
// what() is "<outermost context>: ...: <innermost context>: <message>".
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

  // Puts a place (file, tensor, key) in front of what is already there.
  Error& add_context(std::string_view place);
  // One line that tells the obvious next step; printed after the error.
  Error& hint(std::string text);
  // The system does not let us read a file that is there, which says nothing about its content.
  Error& unreadable();
  // What the reference raises for this refusal ("ValueError", ...); empty for the tool's own
  // errors.
  Error& reference_type(std::string type);

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& hint_text() const noexcept { return hint_; }
  [[nodiscard]] bool is_unreadable() const noexcept { return unreadable_; }
  [[nodiscard]] const std::string& reference_type_name() const noexcept { return reference_type_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
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

}  // namespace mxfp4
