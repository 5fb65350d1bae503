# SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
# Builds CUDA sources with the C++ compiler, for machines without CUDA:
#   include(${CMAKE_CURRENT_LIST_DIR}/cuda_on_cpu/cuda_on_cpu.cmake)
#   tc_cuda_on_cpu(TARGET)    # once the target has its .cu files
# Packages of one project share the library tc_cuda_on_cpu.
option(TC_CUDA_CHECK "check every memory access of kernels (about 10 times slower)" OFF)
if(NOT TARGET tc_cuda_on_cpu)
  find_package(Threads REQUIRED)
  file(GLOB tc_cuda_on_cpu_parts ${CMAKE_CURRENT_LIST_DIR}/*.cc)
  if(NOT TC_CUDA_CHECK)
    list(FILTER tc_cuda_on_cpu_parts EXCLUDE REGEX "_check\\.cc$")
  endif()
  add_library(tc_cuda_on_cpu STATIC ${tc_cuda_on_cpu_parts})
  set_target_properties(tc_cuda_on_cpu PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  target_compile_options(tc_cuda_on_cpu PRIVATE -O3)
  target_include_directories(tc_cuda_on_cpu BEFORE PUBLIC ${CMAKE_CURRENT_LIST_DIR})
  target_link_libraries(tc_cuda_on_cpu PUBLIC Threads::Threads)
endif()

function(tc_cuda_on_cpu target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  # -xc++: the compilers take the ending .cu for something else. Emitted text reads memory as other types than it was written.
  set(flags -xc++ -fno-strict-aliasing -Wno-unknown-pragmas)
  if(TC_CUDA_CHECK)
    list(APPEND flags -O3 -g -DTC_CUDA_CHECK=1 -fsanitize=thread,alignment,bounds)  # without their libraries
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      list(APPEND flags --param=tsan-instrument-func-entry-exit=0)
    endif()
  else()
    list(APPEND flags -O3)
  endif()
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "${flags}")
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  target_link_libraries(${target} PUBLIC tc_cuda_on_cpu)
endfunction()
