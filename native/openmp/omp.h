#pragma once

// The functions of OpenMP that ggml calls, for the portable build; see team.cpp.
#ifdef __cplusplus
extern "C" {
#endif
int omp_get_num_threads(void);
int omp_get_thread_num(void);
#ifdef __cplusplus
}
#endif
