/* The floor of bench/ranks.lua: all_reduce by plain NCCL and the runtime, in
   two processes of one host, a GPU each.  Build with
     nvcc -O2 -arch=sm_90 -cudart static ranks_floor.c -ldl
   and run with the file of libnccl.so.2 as its argument. */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  char bytes[128];
} nccl_id;

static int (*get_id)(nccl_id *);
static int (*init)(void **, int, nccl_id, int);
static int (*all_reduce)(const void *, void *, size_t, int, int, void *,
                         cudaStream_t);

#define TRY(call)                                                   \
  do {                                                              \
    int result_ = (int)(call);                                      \
    if (result_) {                                                  \
      fprintf(stderr, "%d: %s answers %d\n", rank, #call, result_); \
      exit(1);                                                      \
    }                                                               \
  } while (0)


static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}


static void measure(int rank, void *comm, cudaStream_t stream, size_t count,
                    int n) {
  float *x;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  TRY(cudaMalloc((void **)&x, count * sizeof *x));
  TRY(cudaMemset(x, 0, count * sizeof *x));
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  TRY(all_reduce(x, x, count, 7, 0, comm, stream));
  TRY(cudaStreamEndCapture(stream, &graph));
  TRY(cudaGraphInstantiate(&exec, graph, 0));
  for (int way = 0; way < 2; way++) {
    double best = 1e9;
    for (int turn = 0; turn < 5; turn++) {
      TRY(cudaStreamSynchronize(stream));
      const double begun = now();
      for (int i = 0; i < n; i++)
        if (way)
          TRY(cudaGraphLaunch(exec, stream));
        else
          TRY(all_reduce(x, x, count, 7, 0, comm, stream));
      TRY(cudaStreamSynchronize(stream));
      const double took = (now() - begun) / n;
      best = took < best ? took : best;
    }
    if (!rank)
      printf("floor: all_reduce of %zu bytes, %s: %.2f us\n", count * sizeof *x,
             way ? "replayed" : "eager", best * 1e6);
  }
  TRY(cudaGraphExecDestroy(exec));
  TRY(cudaGraphDestroy(graph));
  TRY(cudaFree(x));
}


static int run(int rank, int in, int out, const char *library) {
  void *nccl = dlopen(library, RTLD_NOW), *comm;
  nccl_id id;
  cudaStream_t stream;
  if (!nccl) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void **)&get_id = dlsym(nccl, "ncclGetUniqueId");
  *(void **)&init = dlsym(nccl, "ncclCommInitRank");
  *(void **)&all_reduce = dlsym(nccl, "ncclAllReduce");
  TRY(cudaSetDevice(rank));
  if (!rank)
    TRY(get_id(&id));
  if (rank ? read(in, &id, sizeof id) < 0 : write(out, &id, sizeof id) < 0)
    return 1;
  TRY(init(&comm, 2, id, rank));
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TRY(all_reduce(NULL, NULL, 0, 7, 0, comm, stream));
  measure(rank, comm, stream, 256, 2000);
  measure(rank, comm, stream, 64 << 20, 20);
  return 0;
}


int main(int argc, char **argv) {
  int ends[2], status;
  if (pipe(ends))
    return 1;
  const pid_t other = fork();
  const int failed =
      run(!other, ends[0], ends[1], argc > 1 ? argv[1] : "libnccl.so.2");
  fflush(stdout);
  if (!other)
    _exit(failed);
  waitpid(other, &status, 0);
  return failed || status;
}
