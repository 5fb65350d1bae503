# The part of the installation that a checkout and a wheel share: the CMake package and the texts.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Both take the prefix of what they install, with a slash at its end; "": that of the installation.

# The package of find_package(tc-emit).
function(tc_install_package prefix)
  set(folder lib/cmake/tc-emit)
  set(here ${PROJECT_SOURCE_DIR}/cmake/package)
  configure_package_config_file(${here}/tc-emit-config.cmake.in ${PROJECT_BINARY_DIR}/package/tc-emit-config.cmake
                                INSTALL_DESTINATION ${folder} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  # Until 1.0 a minor version may change options and functions.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/tc-emit-config-version.cmake
                                   COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
  install(FILES ${PROJECT_BINARY_DIR}/package/tc-emit-config.cmake ${PROJECT_BINARY_DIR}/package/tc-emit-config-version.cmake
                ${here}/tc-emit-functions.cmake ${here}/tc-emit-check.cmake
          DESTINATION ${prefix}${folder})
endfunction()

# The manual page and the completions, which lie in `texts`.
function(tc_install_texts texts prefix)
  install(FILES ${texts}/tc-emit.1 DESTINATION ${prefix}share/man/man1)
  install(FILES ${texts}/tc-emit.bash DESTINATION ${prefix}share/bash-completion/completions RENAME tc-emit)
  foreach(folder IN ITEMS site-functions vendor-completions)  # where zsh looks by itself, and where Debian's does
    install(FILES ${texts}/tc-emit.zsh DESTINATION ${prefix}share/zsh/${folder} RENAME _tc-emit)
  endforeach()
  install(FILES ${texts}/tc-emit.fish DESTINATION ${prefix}share/fish/vendor_completions.d)
endfunction()
