# In place of CMake's own module in a portable build, whose compiler comes without an OpenMP library: the directives are
# compiled as usual, and team.cpp has what they call.
add_library(tapline-openmp STATIC "${CMAKE_SOURCE_DIR}/native/openmp/team.cpp")
foreach(language C CXX)
  add_library(OpenMP::OpenMP_${language} INTERFACE IMPORTED GLOBAL)
  target_compile_options(OpenMP::OpenMP_${language} INTERFACE -fopenmp)
  target_include_directories(OpenMP::OpenMP_${language} INTERFACE "${CMAKE_SOURCE_DIR}/native/openmp")
  target_link_libraries(OpenMP::OpenMP_${language} INTERFACE tapline-openmp)
endforeach()
set(OpenMP_FOUND TRUE)
