# Replaces CMake's module in portable builds, whose compiler has no OpenMP library. Directives are compiled as usual, and
# team.cpp implements the functions that they call.
add_library(tapline-openmp STATIC "${CMAKE_SOURCE_DIR}/native/openmp/team.cpp")
foreach(language C CXX)
  add_library(OpenMP::OpenMP_${language} INTERFACE IMPORTED GLOBAL)
  target_compile_options(OpenMP::OpenMP_${language} INTERFACE -fopenmp)
  target_include_directories(OpenMP::OpenMP_${language} INTERFACE "${CMAKE_SOURCE_DIR}/native/openmp")
  target_link_libraries(OpenMP::OpenMP_${language} INTERFACE tapline-openmp)
endforeach()
set(OpenMP_FOUND TRUE)
