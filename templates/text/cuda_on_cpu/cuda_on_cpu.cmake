# SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
# Builds CUDA sources with the C++ compiler, for machines without CUDA:
#   include(${CMAKE_CURRENT_LIST_DIR}/cuda_on_cpu/cuda_on_cpu.cmake)
#   tc_cuda_on_cpu(TARGET)    # once the target has its .cu files
# Packages of one project share the library tc_cuda_on_cpu.
if(NOT TARGET tc_cuda_on_cpu)
  find_package(Threads REQUIRED)
  file(GLOB tc_cuda_on_cpu_parts ${CMAKE_CURRENT_LIST_DIR}/*.cc)
  add_library(tc_cuda_on_cpu STATIC ${tc_cuda_on_cpu_parts})
  set_target_properties(tc_cuda_on_cpu PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  target_compile_options(tc_cuda_on_cpu PRIVATE -O2)
  target_include_directories(tc_cuda_on_cpu BEFORE PUBLIC ${CMAKE_CURRENT_LIST_DIR})
  target_link_libraries(tc_cuda_on_cpu PUBLIC Threads::Threads)
endif()

function(tc_cuda_on_cpu target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  # -xc++: neither compiler knows the ending .cu as C++. Emitted text reads memory as other types than it was written.
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++;-O3;-fno-strict-aliasing;-Wno-unknown-pragmas")
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  target_link_libraries(${target} PUBLIC tc_cuda_on_cpu)
endfunction()
