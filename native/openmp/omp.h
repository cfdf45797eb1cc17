#pragma once

// What ggml asks of OpenMP beside its directives. The portable build has no OpenMP library: see openmp/team.cpp.
#ifdef __cplusplus
extern "C" {
#endif
int omp_get_num_threads(void);
int omp_get_thread_num(void);
#ifdef __cplusplus
}
#endif
