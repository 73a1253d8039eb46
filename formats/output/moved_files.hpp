// The files of an OUT whose name cannot be exchanged move one by one: the old ones out, the new
// ones in.
#pragma once

#include <string>

#include "formats/os/directory.hpp"

namespace mxfp4 {

// What a replacement (replacement.hpp) calls its folders: names in `holder`, which is OUT's parent,
// or OUT itself.
struct ReplacementPlaces {
  Directory holder;
  std::string out;       // beside: OUT; else empty
  std::string fresh;     // the new result, until it is complete
  std::string old;       // the old result, from then on
  std::string arriving;  // inside: the new one, while its files move to OUT
};

// Moves OUT's files to `old`; then `fresh` becomes `arriving`, which is the point of no return.
// Throws Error::output before it, when everything is where it was. Returns the folder of the
// old files.
[[nodiscard]] Directory move_out(const ReplacementPlaces& places);

// Moves the files of `arriving` to OUT, and removes that folder. Returns a line about what failed
// that the result does not need. Throws Error::output if a file cannot be moved; the next run that
// writes OUT moves it.
[[nodiscard]] std::string move_in(const ReplacementPlaces& places, const Directory& arriving,
                                  const Directory& old);

}  // namespace mxfp4
