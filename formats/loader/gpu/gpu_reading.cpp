#include "formats/loader/gpu/gpu_reading.hpp"

#include <bit>
#include <exception>
#include <thread>

#include "formats/os/near_cpus.hpp"
#include "lib/exec/run_on_threads.hpp"

namespace mxfp4 {

GpuReading::GpuReading(const GpuRing& ring, const GpuPlan& plan, const int32_t* cancel)
    : ring_(ring),
      plan_(plan),
      slots_(ring.memory, ring.threads, ring.slots_of_thread, plan_.slot_bytes()),
      sums_(ring.gpu, plan_, ring.sums, ring.sum_places),
      passes_(ring.gpu, plan_, ring.staging, ring.passed),
      sender_(ring.gpu, plan_, ring.copied, slots_, sums_, passes_),
      cancel_(cancel) {
  for (const LoadRequest& request : plan_.requests()) {
    targets_.push_back(std::bit_cast<CudaDriver::Address>(request.out.data()));
  }
}

void GpuReading::run(const std::vector<int>& near) {
  const CudaDriver& cuda = ring_.gpu.cuda();
  const InContext current(cuda, ring_.gpu.context());
  std::exception_ptr failure;
  try {
    read(near);
  } catch (...) {
    failure = std::current_exception();
  }
  const auto copies = cuda.synchronize(ring_.gpu.copies());
  const auto kernels = cuda.synchronize(ring_.gpu.kernels());
  if (failure) std::rethrow_exception(failure);
  cuda.check(copies, "cuStreamSynchronize");
  cuda.check(kernels, "cuStreamSynchronize");
  plan_.source().check_unchanged();
  sums_.compare();
}

void GpuReading::read(const std::vector<int>& near) {
  struct None {};
  const auto caller = std::this_thread::get_id();
  run_on_threads<None>(static_cast<int>(ring_.threads), ring_.threads, [&](size_t thread, None&) {
    if (std::this_thread::get_id() != caller) run_on(near);
    try {
      work_in(thread);
    } catch (...) {
      failed_.store(true, std::memory_order_relaxed);  // the others wait for this thread's pieces
      throw;
    }
  });
  await_appended(plan_.pieces().size());
}

// Takes pieces through the slots of a thread.
void GpuReading::work_in(size_t thread) {
  const InContext current(ring_.gpu.cuda(), ring_.gpu.context());
  const auto next = [this] { return next_.fetch_add(1, std::memory_order_relaxed); };
  LoadBuffers& buffers = ring_.buffers[thread];
  size_t taken = 0;
  for (size_t i = next(); i < plan_.pieces().size() && !failed(); i = next(), ++taken) {
    const size_t slot = slots_.slot_of(thread, taken);
    await_appended(sums_.needed_before(i));
    for (; slots_.is_used(slot) && !failed(); std::this_thread::yield()) go_on();
    if (failed()) return;
    take(i, slot, buffers);
    go_on();
  }
}

// Reads a piece into a slot.
void GpuReading::take(size_t index, size_t slot, LoadBuffers& buffers) {
  throw_if_cancelled(cancel_);
  slots_.take(slot);
  const auto& [piece, request, group] = plan_.pieces()[index];
  const MutableBytes bytes(slots_.memory_of(slot), static_cast<size_t>(piece.bytes));
  in_context(plan_.place(request), [&, &piece = piece, request = request] {
    plan_.source().read_piece(plan_.requests()[request].layer, piece, bytes, buffers,
                              plan_.checked(request) ? FrameCheck::kChecksums : FrameCheck::kSizes,
                              nullptr);
  });
  sums_.start(index, bytes);
  sender_.add({index, slot});
}

void GpuReading::go_on() {
  if (failed()) return;
  sender_.send(targets_);
  sums_.append_arrived();
}

void GpuReading::await_appended(size_t count) {
  for (; !sums_.has_appended(count) && !failed(); std::this_thread::yield()) go_on();
}

}  // namespace mxfp4
