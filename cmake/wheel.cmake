# What scikit-build-core puts into the wheel: the program beside the Python module, which calls it, and the CMake package, the
# manual page and the completions as data, which pip installs below the environment's folder.
#
# TC_PREBUILT: a build folder that has tc-emit-static and the texts already (scripts/wheel); else they are built here.
if(TC_PREBUILT)
  set(_built ${TC_PREBUILT})
  add_custom_target(wheel_parts ALL)
else()
  set(_built ${PROJECT_BINARY_DIR})
  add_custom_target(wheel_parts ALL DEPENDS tc-emit-static tc_installed_texts)
endif()
include(cmake/install_package.cmake)
install(PROGRAMS ${_built}/tc-emit-static DESTINATION tc_emit/bin RENAME tc-emit)
tc_install_package(${SKBUILD_DATA_DIR}/)
tc_install_texts(${_built}/installed ${SKBUILD_DATA_DIR}/)
