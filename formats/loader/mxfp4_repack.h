/* Reads blobs that `mxfp4-repack convert` wrote into memory of the caller's, with many threads.
 * C99, Linux; link with -lmxfp4_repack (pkg-config mxfp4-repack-loader).
 *
 *     mxfp4_repack_blob *blob;
 *     if (mxfp4_repack_open("packed/rank-00-of-08", &blob) != MXFP4_REPACK_OK)
 *       return fail(mxfp4_repack_last_error());
 *     mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
 *     mxfp4_repack_get_tensor(blob, 0, 0, &tensor);
 *     void *memory = aligned_alloc(4096, (size_t)tensor.bytes);
 *     mxfp4_repack_request request = {.layer = 0, .tensor = 0, .num_experts = -1,
 *                                     .memory = memory, .bytes = tensor.bytes};
 *     mxfp4_repack_read_options options = {.struct_size = sizeof options, .threads = 8};
 *     if (mxfp4_repack_read(blob, &request, 1, &options) != MXFP4_REPACK_OK)
 *       return fail(mxfp4_repack_last_error());
 *     mxfp4_repack_close(blob);
 *
 * Who owns memory until when
 *   - What `open` gives is the caller's until `close`. Every pointer in an answer (names, shapes,
 *     the manifest) points into the blob: it is valid, and does not change, until `close`.
 *   - Memory that is read into is the caller's. It is written only between the call of `read` and
 *     its return, by threads that are done with it when `read` returns, whatever it returns. After
 *     any other answer than MXFP4_REPACK_OK its content is undefined.
 *   - The text of last_error belongs to the library, and is valid until the calling thread's next
 *     call of a function of this header.
 *
 * Threads: every function may be called by several threads at once, with the same blob too; only
 * `close` must come alone, after all others returned.
 *
 * Errors: nothing is thrown, printed or ended, and no signal handler is installed. A function that
 * returns a status says more in last_error, unless it returns MXFP4_REPACK_OK.
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

/* What a function returns; 2, 3 and 6 are the exit codes of the program for the same. */
typedef enum mxfp4_repack_status {
  MXFP4_REPACK_OK = 0,
  MXFP4_REPACK_USAGE = 2,      /* an argument contradicts another one, or this header */
  MXFP4_REPACK_INPUT = 3,      /* the blob is missing, unreadable or damaged */
  MXFP4_REPACK_INTERNAL = 6,   /* a bug of the library */
  MXFP4_REPACK_CANCELLED = 7,  /* the caller asked for it */
  MXFP4_REPACK_NO_MEMORY = 8
} mxfp4_repack_status;

/* One rank's blob: a directory with mxfp4_repack.json. */
typedef struct mxfp4_repack_blob mxfp4_repack_blob;

typedef struct mxfp4_repack_layer {
  size_t struct_size;        /* set by the caller: sizeof(mxfp4_repack_layer) */
  int64_t index;             /* number of the layer in the model */
  const char *prefix;        /* of its tensors' names: "model.layers.3.mlp.experts" */
  const char *engine_prefix; /* the module's path in the engine; often the same */
  int64_t num_tensors;
  int64_t num_experts;       /* on this rank */
  int64_t bytes;             /* of all tensors: what read_layer fills */
} mxfp4_repack_layer;

typedef struct mxfp4_repack_tensor {
  size_t struct_size;  /* set by the caller: sizeof(mxfp4_repack_tensor) */
  const char *name;    /* "model.layers.3.mlp.experts.w13_weight" */
  const char *dtype;   /* safetensors' name: "U8", "I32", "F8_E4M3", "BF16", "F32", ... */
  const int64_t *shape;
  int64_t num_dims;
  int64_t offset;        /* of the first byte, in what read_layer fills */
  int64_t bytes;
  int64_t expert_bytes;  /* of shape[0]'s one entry, where that is the experts; else 0 */
} mxfp4_repack_tensor;

/* A tensor, or the part of it that consecutive experts have, and where it shall go. */
typedef struct mxfp4_repack_request {
  int64_t layer;        /* counts layers of the blob from 0, in the order of the manifest */
  int64_t tensor;       /* counts the layer's tensors from 0 */
  int64_t first_expert; /* 0 for the whole tensor */
  int64_t num_experts;  /* -1: all from first_expert on */
  void *memory;         /* host memory of any alignment */
  int64_t bytes;        /* of memory: exactly what is asked for */
} mxfp4_repack_request;

typedef struct mxfp4_repack_read_options {
  size_t struct_size; /* set by the caller: sizeof(mxfp4_repack_read_options) */
  /* 1 to 1024; 0: as many as CPUs that this process may use. */
  int32_t threads;
  /* Not 0: compare what is read with the blob's checksums: whole tensors with the manifest's,
   * expert ranges of compressed files with those of their frames. An expert range of a plain file
   * has none: asking for it is MXFP4_REPACK_USAGE. */
  int32_t verify;
  /* May be null. Reading stops soon after any thread stores another value than 0 there, and
   * returns MXFP4_REPACK_CANCELLED. Read atomically; has to live until the call returns. */
  const int32_t *cancel;
} mxfp4_repack_read_options;

/* "0.1.0": the library that is loaded. Static text. */
MXFP4_REPACK_API const char *mxfp4_repack_version(void);
/* MXFP4_REPACK_API_VERSION of the library that is loaded. */
MXFP4_REPACK_API int mxfp4_repack_api_version(void);
/* What went wrong in this thread's last call: the file, the tensor or key, and the cause, in one
 * line of UTF-8. Empty after a success; never null. */
MXFP4_REPACK_API const char *mxfp4_repack_last_error(void);

/* Opens the blob in `directory`: reads the manifest, and the header and seek table of every layer
 * file, and compares them. *blob is null unless MXFP4_REPACK_OK is returned. Takes one file
 * descriptor a layer. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_open(const char *directory,
                                                       mxfp4_repack_blob **blob);
/* Null is allowed. */
MXFP4_REPACK_API void mxfp4_repack_close(mxfp4_repack_blob *blob);

/* mxfp4_repack.json as it is (man mxfp4-repack-container); ends with a 0 that *size does not
 * count. `size` may be null. */
MXFP4_REPACK_API const char *mxfp4_repack_manifest(const mxfp4_repack_blob *blob, size_t *size);

/* The safetensors header of a layer's file as it is, JSON, without its length; ends with a 0 that
 * *size does not count. `size` may be null. Null for a layer that is not there. */
MXFP4_REPACK_API const char *mxfp4_repack_header(const mxfp4_repack_blob *blob, int64_t layer,
                                                 size_t *size);

MXFP4_REPACK_API int64_t mxfp4_repack_num_layers(const mxfp4_repack_blob *blob);
/* Fills *layer as far as its struct_size goes. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_get_layer(const mxfp4_repack_blob *blob,
                                                            int64_t layer,
                                                            mxfp4_repack_layer *answer);
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_get_tensor(const mxfp4_repack_blob *blob,
                                                             int64_t layer, int64_t tensor,
                                                             mxfp4_repack_tensor *answer);

/* Reads all that is requested; requests may be of several layers, and must not share memory.
 * `options` may be null: all CPUs, no verification. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_read(const mxfp4_repack_blob *blob,
                                                       const mxfp4_repack_request *requests,
                                                       size_t num_requests,
                                                       const mxfp4_repack_read_options *options);
/* Reads all tensors of a layer, each to its `offset`; `bytes` is the layer's. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_read_layer(
    const mxfp4_repack_blob *blob, int64_t layer, void *memory, int64_t bytes,
    const mxfp4_repack_read_options *options);

/* Reads a tensor's bytes [begin, begin + bytes), for who moves tensors piece by piece. Pieces that
 * end where mxfp4_repack_cut says are read once each; others decode their first or last frame in
 * vain for what lies outside. `verify` compares frames with their checksums: pieces of plain files
 * have none, and are MXFP4_REPACK_USAGE then. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_read_part(
    const mxfp4_repack_blob *blob, int64_t layer, int64_t tensor, int64_t begin, void *memory,
    int64_t bytes, const mxfp4_repack_read_options *options);
/* Where a piece of a tensor that starts at byte `begin` and takes at most `limit` bytes, 1 or more,
 * best ends: *end, more than begin. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_cut(const mxfp4_repack_blob *blob, int64_t layer,
                                                      int64_t tensor, int64_t begin, int64_t limit,
                                                      int64_t *end);

/* Reads tensors of a layer through memory that is smaller than they are, a ring; pinned memory that is
 * copied to a GPU, say. Threads fill the ring in order; runs that are full come out of it in the same
 * order, and are given back when they have been copied:
 *
 *     mxfp4_repack_run run = {.struct_size = sizeof run};
 *     while (mxfp4_repack_stream_next(stream, &run) == MXFP4_REPACK_OK && run.bytes > 0) {
 *       copy(tensors[run.tensor] + run.begin, run.memory, run.bytes);
 *       mxfp4_repack_stream_give_back(stream);
 *     }
 *
 * One thread at a time may call the functions of a stream. */
typedef struct mxfp4_repack_stream mxfp4_repack_stream;

/* Consecutive bytes of one tensor. */
typedef struct mxfp4_repack_run {
  size_t struct_size; /* set by the caller: sizeof(mxfp4_repack_run) */
  int64_t tensor;     /* counts the layer's tensors from 0 */
  int64_t begin;      /* the first byte, in the tensor */
  int64_t bytes;      /* 0: there are no more */
  const void *memory; /* in the ring */
} mxfp4_repack_run;

/* Begins to read `num_tensors` tensors of a layer, in the order of `tensors`, into `ring`. Runs have
 * at most `run_bytes`, 1 or more; `ring_bytes` is four times that or more. `verify` compares each
 * tensor with its checksum in the manifest; its last run comes after the comparison. `cancel` has to
 * live until `close`. *stream is null unless MXFP4_REPACK_OK is returned. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_stream_open(
    const mxfp4_repack_blob *blob, int64_t layer, const int64_t *tensors, size_t num_tensors,
    void *ring, int64_t ring_bytes, int64_t run_bytes, const mxfp4_repack_read_options *options,
    mxfp4_repack_stream **stream);
/* Waits for the next run. Fills *run as far as its struct_size goes. At most two runs may be held
 * meanwhile. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_stream_next(mxfp4_repack_stream *stream,
                                                              mxfp4_repack_run *run);
/* Lets the oldest run's memory be filled anew. */
MXFP4_REPACK_API mxfp4_repack_status mxfp4_repack_stream_give_back(mxfp4_repack_stream *stream);
/* Ends the stream, also before its end: no thread writes to the ring any more when it returns. Comes
 * before the blob's close. Null is allowed. */
MXFP4_REPACK_API void mxfp4_repack_stream_close(mxfp4_repack_stream *stream);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* MXFP4_REPACK_H */
