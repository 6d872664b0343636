# Three functions, so that a module's CMakeLists.txt only lists files and dependencies.

# Flags for the project's own code alone; third-party headers come in as SYSTEM.
add_library(tandem_flags INTERFACE)
target_compile_features(tandem_flags INTERFACE cxx_std_20)
target_compile_options(tandem_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor>
  $<$<BOOL:${TANDEM_WERROR}>:-Werror>)
target_compile_definitions(tandem_flags INTERFACE $<$<CONFIG:Debug>:TANDEM_DEBUG>)
if(TANDEM_SANITIZE)
  target_compile_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)  # g++ 12 is wrong about std::regex under sanitizers
  target_link_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()

# tandem_module(NAME rollout SOURCES a.cpp ... [ATEN] [DEPS tandem::base ...] [PRIVATE_DEPS fmt::fmt ...])
# Defines the static library tandem::NAME, included as "NAME/file.h". ATEN: its sources use the
# precompiled <ATen/ATen.h>, and its users link LibTorch.
function(tandem_module)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ATEN" "NAME" "SOURCES;DEPS;PRIVATE_DEPS")
  add_library(tandem_${arg_NAME} STATIC ${arg_SOURCES})
  add_library(tandem::${arg_NAME} ALIAS tandem_${arg_NAME})
  target_include_directories(tandem_${arg_NAME} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(tandem_${arg_NAME} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS} tandem_flags)
  if(arg_ATEN)
    target_link_libraries(tandem_${arg_NAME} PUBLIC torch::cpu)
    target_precompile_headers(tandem_${arg_NAME} REUSE_FROM tandem_aten_pch)
  endif()
endfunction()

# tandem_test(NAME rollout/block_manager [ATEN] [DEPS tandem::rollout ...] [LABELS slow ...])
# Builds tests/NAME_test.cpp and registers it as one CTest test: loading LibTorch takes about a
# second, so it is paid once a file and not once a TEST_CASE.
function(tandem_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ATEN" "NAME" "DEPS;LABELS")
  string(REPLACE "/" "_" target "${arg_NAME}_test")
  add_executable(${target} "${PROJECT_SOURCE_DIR}/tests/${arg_NAME}_test.cpp")
  target_link_libraries(${target} PRIVATE ${arg_DEPS} tandem_test_main tandem_flags)
  if(arg_ATEN)
    target_link_libraries(${target} PRIVATE torch::cpu)
    target_precompile_headers(${target} REUSE_FROM tandem_aten_pch)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${target} --no-intro)
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 240
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()
