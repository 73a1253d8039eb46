// Amazon's signature, version 4, of a request. libcurl has one, too, but before 7.86, as on Ubuntu
// 22.04, not with the fields that S3 wants signed.
#pragma once

#include <string>
#include <vector>

#include "formats/remote/far_file.hpp"

namespace mxfp4 {

// The fields of the head of a request of `url`, whose query is sorted and escaped. `time`:
// "20130524T000000Z". `condition`: a field more that is signed, "if-none-match:*". A body is not.
[[nodiscard]] std::vector<std::string> signed_fields(const S3Keys& keys, const std::string& method,
                                                     const std::string& url,
                                                     const std::string& time,
                                                     const std::string& condition = "");

}  // namespace mxfp4
