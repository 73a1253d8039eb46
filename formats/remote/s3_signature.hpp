// Amazon's signature, version 4, of a request for an object or a listing. libcurl has one, too, but
// before 7.86, as on Ubuntu 22.04, not with the fields that S3 wants signed.
#pragma once

#include <string>
#include <vector>

#include "formats/remote/far_file.hpp"

namespace mxfp4 {

// The fields of the head of a GET of `url`, whose query is sorted and escaped. `time`:
// "20130524T000000Z".
[[nodiscard]] std::vector<std::string> signed_fields(const S3Keys& keys, const std::string& url,
                                                     const std::string& time);

}  // namespace mxfp4
