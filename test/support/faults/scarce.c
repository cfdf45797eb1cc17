/* Loaded before a process's own libraries: a machine that has no more threads, or no memory of one size.
 *   SCARCE_THREADS=1     no thread starts while it is set, which setenv() may do at any time
 *   SCARCE_BYTES=N       no block of exactly N bytes; read once, when the first block is asked for */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);

void *malloc(size_t size) {
  static size_t missing = 0; /* 1: there is memory of every size */
  if (missing == 0) {
    const char *asked = getenv("SCARCE_BYTES");
    missing = asked ? strtoull(asked, 0, 10) : 1;
  }
  if (size == missing && size > 1) {
    errno = ENOMEM;
    return 0;
  }
  return __libc_malloc(size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (getenv("SCARCE_THREADS")) return EAGAIN;
  if (!real) real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, run, argument);
}
