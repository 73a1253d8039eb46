#include "formats/hdf5/hdf5_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "formats/hdf5/hdf5_dataset.hpp"
#include "formats/hdf5/hdf5_handle.hpp"
#include "formats/hdf5/hdf5_index.hpp"
#include "lib/core/error.hpp"
#include "lib/core/expert_name.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr int kMaxGroupDepth = 32;

struct Link {
  std::string name;
  H5L_type_t type;
};

// Exceptions must not pass through the library: the callback only collects.
herr_t collect_link(hid_t /*group*/, const char* name, const H5L_info_t* info,
                    void* links) noexcept {
  try {
    static_cast<std::vector<Link>*>(links)->push_back({name, info->type});
    return 0;
  } catch (...) {
    return -1;
  }
}

std::vector<Link> list_links(hid_t group) {
  std::vector<Link> links;
  hdf5_check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_link, &links),
             "the group cannot be listed");
  return links;
}

// Visits the root and every group below it. A list of groups to visit takes the place of recursion.
class Walker {
 public:
  Walker(hid_t file, bool has_user_block, const Emit& emit)
      : file_(file), finder_(file), has_user_block_(has_user_block), emit_(emit) {}

  void walk() {
    groups_.push_back({.name = "", .path = "/", .depth = 0});
    while (!groups_.empty()) {
      const Group group = std::move(groups_.back());
      groups_.pop_back();
      const Hdf5Handle handle(H5Gopen2(file_, group.path.c_str(), H5P_DEFAULT), H5Gclose,
                              "the group cannot be opened");
      const auto links = in_context(group.depth == 0 ? "root group" : shown(group.name),
                                    [&] { return list_links(handle.get()); });
      for (const Link& link : links) {
        const std::string name = group.depth == 0 ? link.name : group.name + "." + link.name;
        const std::string path = group.depth == 0 ? "/" + link.name : group.path + "/" + link.name;
        in_context(shown(name), [&] { visit(handle.get(), link, {name, path, group.depth + 1}); });
      }
    }
  }

 private:
  struct Group {
    std::string name;  // dotted
    std::string path;  // in the file
    int depth;
  };

  void visit(hid_t parent, const Link& link, Group here) {
    check_tensor_name(here.name);
    if (link.type == H5L_TYPE_SOFT) throw Error::input("soft links are not followed");
    if (link.type == H5L_TYPE_EXTERNAL) throw Error::input("external links are not followed");
    if (link.type != H5L_TYPE_HARD) throw Error::input("links of this kind are not followed");
    H5G_stat_t object{};
    hdf5_check(H5Gget_objinfo(parent, link.name.c_str(), 0, &object), "object cannot be read");
    if (object.type == H5G_GROUP) {
      if (here.depth > kMaxGroupDepth) {
        throw Error::input(fmt::format("groups are nested deeper than {}", kMaxGroupDepth));
      }
      if (!seen_.insert({object.objno[0], object.objno[1]}).second) {
        throw Error::input("a group that is reached by two names");
      }
      groups_.push_back(std::move(here));
    } else if (object.type == H5G_DATASET) {
      const Hdf5Handle dataset(H5Dopen2(parent, link.name.c_str(), H5P_DEFAULT), H5Dclose,
                               "dataset cannot be opened");
      if (!hdf5_holds_numbers(dataset.get()) && !names_expert(here.name)) return;
      Hdf5Dataset description = describe_hdf5_dataset(dataset.get(), finder_, [&] { emit_({}); });
      if (has_user_block_ && description.chunked()) {
        throw Error::input("chunks behind a user block are not supported");
      }
      description.name = std::move(here.name);
      emit_(encode_hdf5_dataset(description));
    }
  }

  hid_t file_;
  Hdf5ChunkFinder finder_;
  bool has_user_block_;
  const Emit& emit_;
  std::vector<Group> groups_;  // to be visited
  std::set<std::pair<unsigned long, unsigned long>> seen_;
};

std::map<std::string, std::string> read_root_attributes(hid_t file) {
  std::map<std::string, std::string> attributes;
  const Hdf5Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "root group cannot be opened");
  H5O_info_t info;
  hdf5_check(H5Oget_info(root.get(), &info), "root group cannot be read");
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Hdf5Handle attribute(
        H5Aopen_by_idx(root.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose, "attributes cannot be read");
    std::string name(256, '\0');
    const ssize_t length = H5Aget_name(attribute.get(), name.size(), name.data());
    hdf5_check(length, "attributes cannot be read");
    name.resize(std::min(name.size() - 1, static_cast<size_t>(length)));
    auto value = in_context("attribute " + shown(name),
                            [&] { return read_hdf5_attribute(attribute.get()); });
    if (value) attributes.emplace(name, std::move(*value));
  }
  return attributes;
}

// Whether the file begins with bytes that are not HDF5. Some versions of the library count the
// addresses of chunks from the file's start, others from behind these bytes.
bool has_user_block(hid_t file) {
  const Hdf5Handle properties(H5Fget_create_plist(file), H5Pclose, "cannot be opened");
  hsize_t size = 0;
  hdf5_check(H5Pget_userblock(properties.get(), &size), "cannot be opened");
  return size != 0;
}

}  // namespace

void walk_hdf5(const std::string& path, const Emit& emit) {
  prepare_hdf5();
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "cannot be opened");
  use_chunk_finder(access.get());  // its driver takes no locks, which some file systems do not have
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose,
                        "cannot be opened");
  emit(encode_hdf5_attributes(read_root_attributes(file.get())));
  Walker(file.get(), has_user_block(file.get()), emit).walk();
}

}  // namespace mxfp4
