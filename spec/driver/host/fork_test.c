/* The host device in a child of a fork: every row answers at once, whatever
   lock the parent held, and nothing of the parent's changes. */
#define _GNU_SOURCE
#include "driver/host/host_support.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

#include "driver/host/base/base.h"

#define MIB ((size_t)1 << 20)
enum { HANGS_AFTER = 20 /* s */ };

typedef void (*any_function)(void);
/* As many arguments as the longest row has. */
typedef CUresult (*long_row)(void *, void *, void *, void *, void *, void *,
                             void *, void *, void *, void *, void *);


/* LeakSanitizer asks at exit.  What the parent's workers held when it forked is
   no leak of a child's, which has no such threads.  It finds no hidden name. */
static bool in_child;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
  return in_child;
}


/* Runs `fn` in a child; its status as waitpid gives it. */
static int child_run(void (*fn)(void)) {
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    in_child = true;
    alarm(HANGS_AFTER);
    fn();
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}


/* The rows that need no driver. */
static bool is_plain(const char *name) {
  return !strncmp(name, "cuGetError", 10) ||
         !strcmp(name, "cuDriverGetVersion") ||
         !strcmp(name, "cuGetProcAddress");
}


static void *locker(void *both) {
  sem_t *sems = both;
  host_lock();
  sem_post(&sems[0]);
  sem_wait(&sems[1]);
  host_unlock();
  return NULL;
}


static void rows_all(void) {
  static char memory[4096];
  static const struct {
    const char *name;
    any_function function;
  } rows[] = {
#define X(name, version, parameters, arguments) \
  {#name, (any_function)host_##name},
      CGL_DRIVER_ROWS(X)
#undef X
  };
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      void *p = pass ? memory : NULL;
      CUresult answer =
          is_plain(rows[i].name)
              ? CUDA_ERROR_NOT_INITIALIZED
              : ((long_row)rows[i].function)(p, p, p, p, p, p, p, p, p, p, p);
      if (answer != CUDA_ERROR_NOT_INITIALIZED &&
          answer != CUDA_ERROR_INVALID_VALUE) {
        fprintf(stderr, "%s answers %d\n", rows[i].name, answer);
        _exit(1);
      }
    }
}


static CUstream stream;
static CUevent event;
static CUgraph graph;
static CUgraphExec exec;
static CUdeviceptr plain, mapped;
static CUmemGenericAllocationHandle physical;
static void *pinned;


#define REFUSED(call)                               \
  if (driver->call != CUDA_ERROR_NOT_INITIALIZED) { \
    fprintf(stderr, "%s is not refused\n", #call);  \
    _exit(1);                                       \
  }


static void objects_all(void) {
  REFUSED(cuInit(0))
  REFUSED(cuCtxSetCurrent(context))
  REFUSED(cuCtxSynchronize())
  REFUSED(cuStreamSynchronize(stream))
  REFUSED(cuStreamQuery(stream))
  REFUSED(cuEventRecord(event, stream))
  REFUSED(cuEventSynchronize(event))
  REFUSED(cuMemsetD32Async(plain, 1, 4, stream))
  REFUSED(cuGraphLaunch(exec, stream))
  REFUSED(cuGraphExecDestroy(exec))
  REFUSED(cuGraphDestroy(graph))
  REFUSED(cuEventDestroy(event))
  REFUSED(cuStreamDestroy(stream))
  REFUSED(cuMemFree(plain))
  REFUSED(cuMemUnmap(mapped, 2 * MIB))
  REFUSED(cuMemRelease(physical))
  REFUSED(cuMemFreeHost(pinned))
  REFUSED(cuModuleUnload(module))
  REFUSED(cuDevicePrimaryCtxRelease(0))
  if (*driver->failure_text())
    _exit(1);
  *(int *)pinned = 5;
}


static void mapped_write(void) {
  signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
  *(volatile int *)(uintptr_t)mapped = 5;
}


static void objects_make(void) {
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access = {.location = prop.location,
                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  stream = new_stream(CU_STREAM_NON_BLOCKING);
  plain = new_memory(64);
  DO(cuEventCreate(&event, 0));
  DO(cuMemHostAlloc(&pinned, 64, 0));
  DO(cuGraphCreate(&graph, 0));
  DO(cuGraphInstantiate(&exec, graph, 0));
  DO(cuMemAddressReserve(&mapped, 2 * MIB, 0, 0, 0));
  DO(cuMemCreate(&physical, 2 * MIB, &prop, 0));
  DO(cuMemMap(mapped, 2 * MIB, 0, physical, 0));
  DO(cuMemSetAccess(mapped, 2 * MIB, &access, 1));
  DO(cuMemsetD32(mapped, 1, 16));
  *(int *)pinned = 1;
}


static void test_unopened(void) {
  driver = cgl_driver_host();
  DO(cuInit(0));
  tap_ok(child_run(open_device) == 0,
         "a child opens the device that its parent had not");
}


static void test_opened(void) {
  open_device();
  objects_make();
  tap_ok(child_run(objects_all) == 0, "calls on the parent's objects answer "
                                      "NOT_INITIALIZED");
  tap_ok(WTERMSIG(child_run(mapped_write)) == SIGSEGV,
         "a child has none of the parent's mappings");
  sem_t sems[2];
  sem_init(&sems[0], 0, 0);
  sem_init(&sems[1], 0, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, locker, sems);
  sem_wait(&sems[0]);
  int status = child_run(rows_all);
  sem_post(&sems[1]);
  pthread_join(thread, NULL);
  tap_ok(status == 0, "every row answers, although the lock was held");
  tap_ok(read_int(plain) == 0 && read_int(mapped) == 1 && *(int *)pinned == 1,
         "the parent's memory is as it was");
  IS(SUCCESS, cuGraphLaunch(exec, stream));
  IS(SUCCESS, cuStreamSynchronize(stream));
}


int main(void) {
  image();
  test_unopened();
  test_opened();
  return tap_done();
}
