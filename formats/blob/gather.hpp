// Findings of a check: damage is gathered, and ends nothing.
#pragma once

#include <string>
#include <vector>

#include "lib/core/error.hpp"

namespace mxfp4 {

// Runs `check`; an error about a file becomes a finding, unless the system does not let us read it.
template <class Check>
void gather(std::vector<std::string>& findings, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    if (error.is_unreadable()) throw;
    findings.emplace_back(error.what());
  }
}

}  // namespace mxfp4
