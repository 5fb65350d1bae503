# What `cmake --install` and CPack put where, and tc-emit-static, the program of the wheel.
#
#   bin/tc-emit                             the program
#   lib/cmake/tc-emit/                      find_package(tc-emit): the target tc-emit::tc-emit and the functions of docs/cmake.md
#   share/man/man1/tc-emit.1, share/bash-completion, share/zsh, share/fish     written by the program itself
#   share/doc/tc-emit/                      README, changelog, licence
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The same objects, linked with nothing that has to be on the machine where it runs.
add_executable(tc-emit-static EXCLUDE_FROM_ALL cli/main.cc)
target_link_libraries(tc-emit-static PRIVATE tc_cli tc_importer tc_core)
target_link_options(tc-emit-static PRIVATE -static -s)

set(_texts ${PROJECT_BINARY_DIR}/installed)
add_custom_command(
  OUTPUT ${_texts}/tc-emit.1 ${_texts}/tc-emit.bash ${_texts}/tc-emit.zsh ${_texts}/tc-emit.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${_texts}
  COMMAND tc-emit man > ${_texts}/tc-emit.1
  COMMAND tc-emit completion bash > ${_texts}/tc-emit.bash
  COMMAND tc-emit completion zsh > ${_texts}/tc-emit.zsh
  COMMAND tc-emit completion fish > ${_texts}/tc-emit.fish
  DEPENDS tc-emit VERBATIM)
add_custom_target(tc_installed_texts ALL DEPENDS ${_texts}/tc-emit.1)

if(SKBUILD)  # pip builds a wheel of the sources
  include(cmake/wheel.cmake)
  return()
endif()
include(cmake/install_package.cmake)
tc_install_package("")
install(TARGETS tc-emit RUNTIME)
tc_install_texts(${_texts} "")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tc-emit)
set(CPACK_PACKAGE_VENDOR "tc-emit")
set(CPACK_PACKAGE_CONTACT "The tc-emit authors <tc-emit@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler from ONNX models to C or CUDA source that people can read")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gcc | c-compiler, cmake, make")
include(CPack)
