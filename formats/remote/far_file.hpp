// A file on another machine: where it is, with what it is asked for, and what is known of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "formats/os/file.hpp"
#include "formats/os/positioned_file.hpp"

namespace mxfp4 {

// Keys of object storage; without an id requests are not signed.
struct S3Keys {
  std::string id{}, secret{}, token{}, region{};
};

// With what a server is asked, and what to tell a user whom it refuses. Secrets are in no message.
struct FarAccess {
  std::string bearer{};  // a token
  S3Keys s3{};
  bool netrc = false;     // the user's ~/.netrc may name the host
  std::string refused{};  // the hint for 401 and 403
  std::string missing{};  // the hint for 404
};

// A file on another machine. What is learnt of it comes with the first answer: read it only after
// that.
struct FarFile {
  std::string name;  // for messages
  std::string url{};
  std::shared_ptr<const FarAccess> access{};
  int64_t size = -1;        // learnt
  std::string validator{};  // learnt: an ETag or a time, the same as long as the file is
  std::string sha256{};     // learnt, from a hub
  std::string target{};     // learnt: where the url leads; the fetcher's own

  // In place of a url: a program's file system has it, which is read from front to back, since the
  // program fetches what comes next.
  std::shared_ptr<const PositionedFile> mounted{};
  FileStatus status{};   // of that
  bool is_read = false;  // by a thread of the fetcher, whose mutex guards it
};

}  // namespace mxfp4
