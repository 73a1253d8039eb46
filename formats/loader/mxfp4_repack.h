/* Reads blobs that `mxfp4-repack convert` wrote into the caller's memory, with many threads, or makes the
 * same bytes from a checkpoint on the way there.
 * C99, Linux; link with -lmxfp4_repack (pkg-config mxfp4-repack-loader).
 *
 *     mxfp4_repack_blob *blob;
 *     if (mxfp4_repack_open("packed/rank-00-of-08", NULL, &blob) != MXFP4_REPACK_OK)
 *       return fail(mxfp4_repack_last_error());
 *     mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
 *     mxfp4_repack_get_tensor(blob, 0, 0, &tensor);
 *     void *memory = aligned_alloc(4096, (size_t)tensor.bytes);
 *     mxfp4_repack_request request = {.memory = memory, .bytes = tensor.bytes};
 *     mxfp4_repack_read_options options = {.struct_size = sizeof options, .threads = 8};
 *     if (mxfp4_repack_read(blob, &request, 1, &options) != MXFP4_REPACK_OK)
 *       return fail(mxfp4_repack_last_error());
 *     mxfp4_repack_close(blob);
 *
 * Who owns memory until when
 *   - The blob that `open` gives is the caller's until `close`. Every pointer in an answer (names,
 *     shapes, the manifest) points into the blob: it is valid, and does not change, until `close`.
 *   - Memory that is read into is the caller's. The library's threads write to it only until `read`
 *     returns, whatever `read` returns. After any other answer than MXFP4_REPACK_OK its content is
 *     undefined.
 *   - The text of last_error belongs to the library, and is valid until the calling thread's next
 *     call of a function of this header.
 *
 * Threads: several threads may call every function at once, with the same blob too. But `close` must come
 * alone, after all others returned.
 *
 * Paths: a relative one means what it means when it is given, though files are opened later. An empty one is
 * MXFP4_REPACK_USAGE.
 *
 * Errors: the library throws and prints nothing, never ends the process, and installs no signal
 * handler. After any other status than MXFP4_REPACK_OK, last_error says what went wrong.
 *
 * Versions: MXFP4_REPACK_API_VERSION is raised, and with it the library's soname, when something
 * here changes its meaning. Structures only grow at their ends: `struct_size` says which fields the
 * caller knows, and the library reads and writes no others. */
#ifndef MXFP4_REPACK_H
#define MXFP4_REPACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MXFP4_REPACK_API __attribute__((visibility("default")))
#else
#define MXFP4_REPACK_API
#endif

#define MXFP4_REPACK_API_VERSION 0

/* NOLINTBEGIN(readability-identifier-naming): names as C libraries have them. */

/* What a function returns. 2, 3, 4 and 6 mean the same as the program's exit codes. */
typedef enum mxfp4_repack_status {
  MXFP4_REPACK_OK = 0,
  MXFP4_REPACK_USAGE = 2,      /* an argument contradicts another one, or this header */
  MXFP4_REPACK_INPUT = 3,      /* the blob is missing, unreadable or damaged */
  MXFP4_REPACK_UNSUPPORTED = 4, /* no engine would serve it so, or no layout exists */
  MXFP4_REPACK_INTERNAL = 6,   /* a bug of the library */
  MXFP4_REPACK_CANCELLED = 7,  /* `cancel` became other than 0 */
  MXFP4_REPACK_NO_MEMORY = 8,
  MXFP4_REPACK_NO_GPU = 9      /* there is no CUDA driver or no such GPU, or the driver failed */
} mxfp4_repack_status;

/* The kind of fault behind MXFP4_REPACK_INPUT. */
typedef enum mxfp4_repack_fault {
  MXFP4_REPACK_FAULT_NONE = 0,       /* the last call returned another status */
  MXFP4_REPACK_FAULT_FORM = 1,       /* a manifest, header, seek table or frame as no blob has it */
  MXFP4_REPACK_FAULT_MISSING = 2,    /* a layer's file is not there */
  MXFP4_REPACK_FAULT_UNREADABLE = 3, /* the system does not let us read it, or it is not a regular file */
  MXFP4_REPACK_FAULT_SIZE = 4,       /* a file is shorter or longer than the manifest says */
  MXFP4_REPACK_FAULT_CHECKSUM = 5,   /* bytes are not those that were written */
  /* a layer's file is not the one that the manifest describes, or the checkpoint is not the blob's */
  MXFP4_REPACK_FAULT_MISMATCH = 6
} mxfp4_repack_fault;

/* One rank's layers: of a blob, a directory with mxfp4_repack.json, or of a checkpoint; or the tensors of a
 * safetensors file. */
typedef struct mxfp4_repack_blob mxfp4_repack_blob;

typedef struct mxfp4_repack_layer {
  size_t struct_size;        /* set by the caller: sizeof(mxfp4_repack_layer) */
  int64_t index;             /* number of the layer in the model */
  const char *prefix;        /* of its tensors' names: "model.layers.3.mlp.experts" */
  const char *engine_prefix; /* the module's path in the engine; often the same */
  int64_t num_tensors;
  int64_t num_experts;       /* on this rank */
  int64_t bytes;             /* of all tensors */
  /* Not 0: the tensors' bytes are read past the system's page cache. Becomes 0 when the file system
   * refuses the first such read, which is then an ordinary one. */
  int32_t direct;
  int32_t reserved; /* 0 */
} mxfp4_repack_layer;

typedef struct mxfp4_repack_tensor {
  size_t struct_size;  /* set by the caller: sizeof(mxfp4_repack_tensor) */
  const char *name;    /* "model.layers.3.mlp.experts.w13_weight" */
  const char *dtype;   /* safetensors' name: "U8", "I32", "F8_E4M3", "BF16", "F32", ... */
  const int64_t *shape;
  int64_t num_dims;
  int64_t offset;        /* of the first byte, in the layer's data */
  int64_t bytes;
  int64_t expert_bytes;  /* of one expert, where shape[0] counts experts; else 0 */
} mxfp4_repack_tensor;

/* Consecutive bytes of a tensor, and the memory to read them to. */
typedef struct mxfp4_repack_request {
  int64_t layer;  /* counts layers of the blob from 0, in the order of the manifest */
  int64_t tensor; /* counts the layer's tensors from 0 */
  int64_t begin;  /* the first byte, in the tensor; of an expert, a multiple of expert_bytes */
  void *memory;   /* host memory of any alignment */
  int64_t bytes;  /* of memory */
} mxfp4_repack_request;

typedef struct mxfp4_repack_open_options {
  size_t struct_size; /* set by the caller: sizeof(mxfp4_repack_open_options) */
  /* Not 0: read the tensors' bytes past the system's page cache (O_DIRECT), which is neither asked
   * nor filled. Usually faster when the blob is not cached (not on every disk), slower when it
   * is. Files whose file system has no such reads are read as usual, without an
   * error: see mxfp4_repack_layer's `direct`. Manifest, headers and seek tables always come through
   * the cache. Each thread takes 4 MiB more memory while it reads, or as much as the largest frame. */
  int32_t direct;
  /* Not 0: a layer's file is opened, and compared with the manifest, when a function is first asked about
   * that layer; that function then returns what is wrong with the file. A file that is not asked for may
   * be missing. */
  int32_t lazy;
} mxfp4_repack_open_options;

typedef struct mxfp4_repack_read_options {
  size_t struct_size; /* set by the caller: sizeof(mxfp4_repack_read_options) */
  /* 1 to 1024; 0: one for each CPU that this process may use. */
  int32_t threads;
  /* Not 0: compare what is read with the blob's checksums: whole tensors with the manifest's, parts
   * of tensors in compressed files with those of their frames. A part of a tensor in a plain file
   * has no checksum: MXFP4_REPACK_USAGE. */
  int32_t verify;
  /* May be null. Soon after any thread stores another value than 0 there, reading stops and
   * returns MXFP4_REPACK_CANCELLED. Read atomically; has to live until the call returns. */
  const int32_t *cancel;
} mxfp4_repack_read_options;

/* "0.1.0": the library that is loaded. Static text. */
MXFP4_REPACK_API const char *mxfp4_repack_version(void);
/* MXFP4_REPACK_API_VERSION of the library that is loaded. */
MXFP4_REPACK_API int mxfp4_repack_api_version(void);
/* What went wrong in this thread's last call: the file, the tensor or key, and the cause, in one
 * line of UTF-8, in which other bytes and control characters are escaped. Empty after a success; never
 * null. */
MXFP4_REPACK_API const char *mxfp4_repack_last_error(void);
/* The same as a number. */
MXFP4_REPACK_API mxfp4_repack_fault mxfp4_repack_last_fault(void);
/* Opens the blob in `directory`: reads the manifest, and the header and seek table of every layer
 * file, and compares them byte for byte. `options` may be null. *blob is null unless MXFP4_REPACK_OK is returned. Takes one file
 * descriptor a layer. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_open(const char *directory,
                                                       const mxfp4_repack_open_options *options,
                                                       mxfp4_repack_blob **blob);
/* Opens a checkpoint of safetensors files in place of a blob: a directory, a model in a hub cache, or one
 * file. Every function takes *blob as it takes a blob's; the bytes are those that `convert` would write,
 * and are made each time that they are read. No file is written.
 *
 * `conversion`: JSON text, the manifest of one rank, a blob's mxfp4_repack.json say. It says release, backend, layout,
 * target and slice; what does not follow from this checkpoint is MXFP4_REPACK_INPUT, with the first
 * difference. The text is not kept.
 *
 * What differs from a blob:
 *   - `verify` compares whole tensors for which the conversion states a checksum (a blob's manifest does),
 *     and nothing else; parts are not refused.
 *   - mxfp4_repack_manifest says what `convert --compress none` would write, without checksums of files; checksums of tensors are as in the conversion. 32 zeros: it is not known.
 *     mxfp4_repack_check_file is MXFP4_REPACK_USAGE.
 *   - A read whose bytes come from a file that was cut short, made longer or replaced since it was opened is
 *     MXFP4_REPACK_INPUT, and names the file.
 *   - gpu_read lets the GPU make what the layout allows, from granules as they are stored, in 66 MiB of its
 *     own memory that it keeps until gpu_close. What CPUs make goes through the pinned ring of gpu_open, which
 *     grows to two granules a thread, 256 MiB at most.
 * Takes a file descriptor for each file that it reads from. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_open_checkpoint(const char *checkpoint,
                                                                  const char *conversion,
                                                                  mxfp4_repack_blob **blob);
/* The same for a deployment: the library decides which bytes serve it. `deployment`: a JSON object whose
 * members have the names of the flags of `mxfp4-repack convert` with underscores, {"revision": "0.33.0",
 * "arch": "sm90", "tp_size": 8, "rank": 3}; lists and objects where a flag takes several values (libs, no_lib,
 * layers; env, knob), objects in place of files (target, quantization_config, model_config). What `convert`
 * would refuse is MXFP4_REPACK_UNSUPPORTED; a member that makes no sense is MXFP4_REPACK_USAGE. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_open_checkpoint_for(const char *checkpoint,
                                                                      const char *deployment,
                                                                      mxfp4_repack_blob **blob);
/* Whether a blob was made from this checkpoint: MXFP4_REPACK_OK, or MXFP4_REPACK_INPUT with
 * MXFP4_REPACK_FAULT_MISMATCH, and last_error says which layer or file differs. Names and sizes of files are
 * not looked at: a fine-tune has those of its base. Some 48 KiB of each layer's experts are read and compared
 * with the blob's samples of them, so a change of a few bytes by hand is mostly not seen. Ask it
 * before a blob's experts are served under a checkpoint's other weights.
 *
 * `checkpoint` and `conversion` as above; the conversion is the blob's mxfp4_repack.json. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_same_checkpoint(const char *checkpoint,
                                                                  const char *conversion);
/* Opens one safetensors file as it is, in place of a blob: for the tensors that an engine loads beside its
 * experts. There is one layer, 0, whose prefix is empty and which has no experts; its tensors are the file's, in
 * the order of their bytes. Every function takes *blob as it takes a blob's, but:
 *   - No checksum is known: `verify` compares nothing, and mxfp4_repack_check_file is MXFP4_REPACK_USAGE.
 *   - mxfp4_repack_manifest gives an empty text.
 *   - A read of a file that was cut short, made longer or replaced since it was opened is MXFP4_REPACK_INPUT, and
 *     names the file. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_open_safetensors(const char *file,
                                                                   mxfp4_repack_blob **blob);
/* Null is allowed. */
MXFP4_REPACK_API void mxfp4_repack_close(mxfp4_repack_blob *blob);

/* The text of mxfp4_repack.json, unchanged (man mxfp4-repack-container); ends with a 0 that *size
 * does not count. `size` may be null. Null, and last_error, if the blob is null. */
MXFP4_REPACK_API const char *mxfp4_repack_manifest(const mxfp4_repack_blob *blob, size_t *size);

/* 0, and last_error, if the blob is null. */
MXFP4_REPACK_API int64_t mxfp4_repack_num_layers(const mxfp4_repack_blob *blob);
/* Fills *layer as far as its struct_size goes. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_get_layer(const mxfp4_repack_blob *blob,
                                                            int64_t layer,
                                                            mxfp4_repack_layer *answer);
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_get_tensor(const mxfp4_repack_blob *blob,
                                                             int64_t layer, int64_t tensor,
                                                             mxfp4_repack_tensor *answer);

/* Reads all that is requested; requests may be of several layers, and must not share memory. A
 * compressed frame is decoded whole for each part that has bytes of it. `options` may be null: all CPUs, no
 * verification. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_read(const mxfp4_repack_blob *blob,
                                                       const mxfp4_repack_request *requests,
                                                       size_t num_requests,
                                                       const mxfp4_repack_read_options *options);
/* Reads the whole file of a layer, and compares its checksum with the manifest's. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_check_file(
    const mxfp4_repack_blob *blob, int64_t layer, const mxfp4_repack_read_options *options);

/* Reads tensors to the memory of an NVIDIA GPU. The CUDA driver is looked for when gpu_open is called;
 * nothing else here needs one:
 *
 *     mxfp4_repack_gpu_options gpu_options = {.struct_size = sizeof gpu_options, .threads = 14};
 *     mxfp4_repack_gpu *gpu;
 *     if (mxfp4_repack_gpu_open(0, &gpu_options, &gpu) != MXFP4_REPACK_OK) ...
 *     request.memory = memory_of_the_gpu;
 *     mxfp4_repack_gpu_read(gpu, blob, &request, 1, &options);
 *     mxfp4_repack_gpu_close(gpu);
 *
 * `gpu` holds a ring of pinned memory, threads and streams of its own, in the GPU's primary context. It
 * must not be used in a process that was forked after gpu_open. */
typedef struct mxfp4_repack_gpu mxfp4_repack_gpu;

typedef struct mxfp4_repack_gpu_options {
  size_t struct_size; /* set by the caller: sizeof(mxfp4_repack_gpu_options) */
  /* Readers, with the thread that calls gpu_read: 1 to 1024; 0: as many as CPUs that this process may
   * use. */
  int32_t threads;
  int64_t ring_bytes; /* of pinned memory, at most, for blobs: 4 MiB or more; 0: 64 MiB */
  /* Processes of this host that load at once, with which this one shares caches; 0: it loads alone. */
  int32_t ranks;
  /* Who makes what a checkpoint's layout has to make: 0: the GPU, from the bytes as they are read, and CPUs
   * where it has no memory for that (66 MiB) or the layout is not for it; 1: CPUs; 2: as 0, but
   * MXFP4_REPACK_UNSUPPORTED without the memory. */
  int32_t makes;
} mxfp4_repack_gpu_options;

/* `device`: the GPU as the driver counts, which heeds CUDA_VISIBLE_DEVICES. `options` may be null. *gpu
 * is null unless MXFP4_REPACK_OK is returned. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_gpu_open(int32_t device,
                                                           const mxfp4_repack_gpu_options *options,
                                                           mxfp4_repack_gpu **gpu);
/* As mxfp4_repack_read; `memory` of a request is the GPU's, at a multiple of 8 where tensors are to be
 * verified, and no work of the GPU may use it meanwhile. All bytes have arrived when this returns.
 * `verify` compares whole tensors as they lie on the GPU, which sums them itself, so it costs little time
 * of the CPUs. `threads` of the options is not heeded. Calls with one `gpu` run one after another. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_gpu_read(mxfp4_repack_gpu *gpu,
                                                           const mxfp4_repack_blob *blob,
                                                           const mxfp4_repack_request *requests,
                                                           size_t num_requests,
                                                           const mxfp4_repack_read_options *options);
/* A tensor of a checkpoint that lies in the GPU's memory, one row behind the other. */
typedef struct mxfp4_repack_held {
  const char *name;   /* as in the checkpoint */
  const void *memory; /* the GPU's */
  int64_t bytes;
} mxfp4_repack_held;
/* Makes whole tensors, as gpu_read of a checkpoint does, from the tensors `held` of that checkpoint in the
 * place of its files, of which no byte is read: a trainer's new weights, of the same names, types and sizes.
 * It is over when this returns; no work of the GPU may use any of the memory meanwhile. Tensors that no
 * request needs are not looked at. MXFP4_REPACK_UNSUPPORTED for a blob, and for a tensor that only CPUs can
 * make; MXFP4_REPACK_INPUT with MXFP4_REPACK_FAULT_MISSING for a tensor that is not held, with _SIZE for one
 * of another size: nothing is written then. With `gpu` null nothing is made, and only the answer given. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_gpu_make(mxfp4_repack_gpu *gpu,
                                                           const mxfp4_repack_blob *blob,
                                                           const mxfp4_repack_request *requests,
                                                           size_t num_requests,
                                                           const mxfp4_repack_held *held,
                                                           size_t num_held);
/* Who made what the last gpu_read had to make, for a log: "the GPU", "CPUs: cuMemAlloc: out of
 * memory (2)"; empty where nothing was to be made. Valid until the next call with `gpu`. */
MXFP4_REPACK_API const char *mxfp4_repack_gpu_made_by(const mxfp4_repack_gpu *gpu);
/* Must come alone, after all gpu_read returned. Null is allowed. */
MXFP4_REPACK_API void mxfp4_repack_gpu_close(mxfp4_repack_gpu *gpu);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* MXFP4_REPACK_H */
