// What one reading brings to a GPU: requests, cut into pieces of a slot's size at most. Immutable,
// so threads share it without a lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "formats/loader/load_source.hpp"

namespace mxfp4 {

class GpuPlan {
 public:
  static constexpr size_t kNoGroup = ~size_t{0};
  // Of GPU memory, for raw granules.
  static constexpr int64_t kStagingBytes = int64_t{64} << 20;

  struct Piece {
    LoadPiece piece;
    size_t request;
    size_t group = kNoGroup;
  };
  // Granules that the GPU makes at once, from raw ones in the staging area.
  struct Group {
    const GatherPlan* plan;
    int64_t granules;
    int64_t raw_begin;  // in all raw granules of the tensor
    int64_t to;         // in the request's memory
    int64_t position;   // in the staging area, modulo its bytes: it only grows
    size_t pieces = 0;

    [[nodiscard]] int64_t raw_bytes() const { return granules * mxfp4::raw_bytes(*plan); }
  };

  // `threads` take the first pieces at once; no piece is larger than `most_bytes`. on_gpu: the GPU
  // makes what it can. Throws Error::usage for what cannot be read, as GpuLoader::read().
  GpuPlan(const LoadSource& source, std::span<const LoadRequest> requests, bool verify,
          size_t threads, int64_t most_bytes, bool on_gpu);

  [[nodiscard]] const LoadSource& source() const { return source_; }
  // Bytes of a slot: the largest of the requests' best pieces.
  [[nodiscard]] int64_t slot_bytes() const { return slot_bytes_; }
  // Whether any request is summed.
  [[nodiscard]] bool sums_any() const;
  [[nodiscard]] const std::vector<LoadRequest>& requests() const { return requests_; }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  // The plans of groups, each once.
  [[nodiscard]] const std::vector<const GatherPlan*>& passes() const { return passes_; }
  // A request's file and tensor.
  [[nodiscard]] const std::string& place(size_t request) const { return places_[request]; }
  // Whether the GPU sums a request, and the manifest has the checksum.
  [[nodiscard]] bool summed(size_t request) const {
    return verify_ && source_.has_checksum(requests_[request]);
  }
  // Whether a request's frames are compared with their own checksums, in place of that.
  [[nodiscard]] bool checked(size_t request) const { return verify_ && !summed(request); }

 private:
  // How the GPU makes a request; null where it does not.
  [[nodiscard]] const GatherPlan* pass_of(size_t request) const;
  void cut(size_t request, size_t threads, int64_t most_bytes);
  void cut_raw(size_t request, const GatherPlan& plan, size_t threads);

  const LoadSource& source_;
  std::vector<LoadRequest> requests_;
  bool verify_;
  bool on_gpu_;
  int64_t slot_bytes_ = int64_t{1} << 20;  // at least
  std::vector<std::string> places_;
  std::vector<Piece> pieces_;
  std::vector<Group> groups_;
  int64_t position_ = 0;  // behind the last group
  std::vector<const GatherPlan*> passes_;
};

// A piece that was read, and the slot of the ring where it lies.
struct FullSlot {
  size_t piece;
  size_t slot;
};

}  // namespace mxfp4
