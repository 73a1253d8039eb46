#include "formats/loader/load_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/blob/planned.hpp"
#include "formats/loader/arriving_sum.hpp"
#include "formats/os/input_fault.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/run_on_threads.hpp"

namespace mxfp4 {
namespace {

// Bytes of a plain file that a thread takes at a time.
constexpr int64_t kTakenBytes = int64_t{4} << 20;

// One call of read().
class HostRead {
 public:
  HostRead(const LoadSource& source, std::span<const LoadRequest> requests,
           const LoadOptions& options)
      : source_(source), requests_(requests), options_(options), sums_(requests.size()) {
    for (size_t i = 0; i < requests.size(); ++i) {
      const LoadRequest& request = requests[i];
      if (options.verify) source.check_verifiable(request);
      const int64_t most = std::max(kTakenBytes, source.best_piece(request.layer, request.tensor));
      const auto cut = source.pieces(request.layer, request.tensor, request.offset,
                                     static_cast<int64_t>(request.out.size()), most);
      for (size_t number = 0; number < cut.size(); ++number)
        jobs_.push_back({i, number, cut[number]});
    }
  }

  void run() {
    run_on_threads<LoadBuffers>(options_.threads, jobs_.size(),
                                [this](size_t job, LoadBuffers& buffers) {
                                  throw_if_cancelled(options_.cancel);
                                  read(jobs_[job], buffers);
                                });
    source_.check_unchanged();
    for (size_t i = 0; i < requests_.size(); ++i) {
      const LoadRequest& request = requests_[i];
      if (summed(request)) source_.compare(request.layer, request.tensor, sums_[i].hex());
    }
  }

 private:
  struct Job {
    size_t request;
    size_t number;  // of the request's pieces
    LoadPiece piece;
  };

  [[nodiscard]] bool summed(const LoadRequest& request) const {
    return options_.verify && source_.has_checksum(request);
  }

  // Whole tensors are compared with the manifest, parts with the checksums of their frames.
  void read(const Job& job, LoadBuffers& buffers) {
    const LoadRequest& request = requests_[job.request];
    const LoadPiece& piece = job.piece;
    const MutableBytes out = request.out.subspan(static_cast<size_t>(piece.begin - request.offset),
                                                 static_cast<size_t>(piece.bytes));
    const bool checked = options_.verify && !summed(request);
    ChecksumPart sum;
    if (summed(request)) sum.begin(piece.begin);
    in_context(source_.place(request.layer, request.tensor), [&] {
      source_.read_piece(request.layer, piece, out, buffers,
                         checked ? FrameCheck::kChecksums : FrameCheck::kSizes,
                         summed(request) ? &sum : nullptr);
    });
    if (summed(request)) sums_[job.request].add(job.number, std::move(sum));
  }

  const LoadSource& source_;
  std::span<const LoadRequest> requests_;
  const LoadOptions& options_;
  std::vector<Job> jobs_;
  std::vector<ArrivingSum> sums_;  // by request
};

}  // namespace

// Relaxed: the number only says that no more work is wanted; no other memory is read because of it.
void throw_if_cancelled(const int32_t* cancel) {
  if (cancel != nullptr && __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0) throw Cancelled();
}

bool LoadSource::has_checksum(const LoadRequest& request) const {
  const ManifestTensor& tensor = manifest().layers[request.layer].tensors[request.tensor];
  return std::ssize(request.out) == tensor.spec.bytes() && tensor.xxh3_128 != kNoChecksum;
}

void LoadSource::compare(size_t layer, size_t tensor, const std::string& checksum) const {
  if (checksum == manifest().layers[layer].tensors[tensor].xxh3_128) return;
  throw InputFault(Fault::kChecksum, fmt::format("{}: checksum differs", place(layer, tensor)));
}

void LoadSource::expect(std::span<const LoadRequest> requests) const {
  if (requests.empty() || !reads_ahead()) return;
  const std::scoped_lock lock(expecting_);
  const size_t layer = requests.front().layer;
  const bool in_order = last_layer_ && (layer == *last_layer_ || layer == *last_layer_ + 1);
  last_layer_ = layer;
  if (!in_order) {
    expect_nothing();
    expected_.clear();
  }
  for (const LoadRequest& request : requests) {
    const int64_t whole = tensor_bytes(request.layer, request.tensor);
    const auto bytes = std::ssize(request.out);
    bool& expected = expected_[{request.layer, request.tensor}];
    if (!expected) {
      expect_part(request.layer, request.tensor, request.offset,
                  in_order ? whole - request.offset : bytes);
    }
    expected = bytes != whole;
  }
  const size_t end = in_order ? std::min(layer + 2, manifest_.layers.size()) : 0;
  for (size_t next = layer; next < end; ++next) {
    for (size_t tensor = 0; tensor < manifest_.layers[next].tensors.size(); ++tensor) {
      if (!expected_.try_emplace({next, tensor}, true).second) continue;
      expect_part(next, tensor, 0, tensor_bytes(next, tensor));
    }
  }
}

HeldPass LoadSource::held_pass(size_t /*layer*/, size_t /*tensor*/) const {
  throw Error::unsupported("is read, and not made");
}

std::vector<LoadPiece> LoadSource::cut_granules(size_t tensor, int64_t begin, int64_t bytes,
                                                int64_t limit, int64_t granule) {
  std::vector<LoadPiece> pieces;
  for (const int64_t end = begin + bytes; begin < end; begin += pieces.back().bytes) {
    const int64_t most = std::min(limit, end - begin);
    const int64_t to_next = granule - begin % granule;
    const bool part = to_next < granule || most < granule;
    pieces.push_back({.tensor = tensor,
                      .begin = begin,
                      .bytes = part ? std::min(most, to_next) : most / granule * granule});
  }
  return pieces;
}

void LoadSource::read(std::span<const LoadRequest> requests, const LoadOptions& options) const {
  expect(requests);
  HostRead(*this, requests, options).run();
}

}  // namespace mxfp4
