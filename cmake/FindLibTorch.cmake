# FindLibTorch: LibTorch out of the PyPI wheel (or a libtorch zip, or a ROCm wheel), without torch's own
# TorchConfig.cmake, which on a CUDA wheel refuses to configure without a CUDA toolkit.
#
#   find_package(LibTorch 2.11 REQUIRED COMPONENTS CPU OPTIONAL_COMPONENTS CUDA)
#
# Targets: torch::cpu  (c10, torch_cpu)         always; needs no CUDA toolkit and no GPU
#          torch::cuda (c10_cuda, torch_cuda)   component CUDA; needs CUDAToolkit, nvcc is optional
#          torch::gloo (definitions + headers)  component Gloo;  torch::nccl  component NCCL
# Looked for in LIBTORCH_ROOT (variable or environment), CMAKE_PREFIX_PATH, then .deps/ of the project.
include(FindPackageHandleStandardArgs)

if(NOT LIBTORCH_ROOT)
  # In this order: the variable, CMAKE_PREFIX_PATH (an unpacked libtorch or a wheel's torch folder), .deps/.
  if(DEFINED ENV{LIBTORCH_ROOT})
    set(LIBTORCH_ROOT "$ENV{LIBTORCH_ROOT}")
  else()
    file(GLOB _deps "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3.*/site-packages/torch")
    foreach(_c IN LISTS CMAKE_PREFIX_PATH _deps)
      if(EXISTS "${_c}/lib/libtorch_cpu.so")
        set(LIBTORCH_ROOT "${_c}")
        break()
      endif()
    endforeach()
  endif()
endif()
set(LIBTORCH_ROOT "${LIBTORCH_ROOT}" CACHE PATH "the torch directory of a wheel, or an unpacked libtorch")

if(EXISTS "${LIBTORCH_ROOT}/version.py")
  file(STRINGS "${LIBTORCH_ROOT}/version.py" _l REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_l}")
elseif(EXISTS "${LIBTORCH_ROOT}/build-version")
  file(STRINGS "${LIBTORCH_ROOT}/build-version" LibTorch_VERSION LIMIT_COUNT 1)
endif()

set(_lib "${LIBTORCH_ROOT}/lib")
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS "${LIBTORCH_ROOT}/include" NO_DEFAULT_PATH)
find_library(LibTorch_C10 c10 PATHS "${_lib}" NO_DEFAULT_PATH)
find_library(LibTorch_CPU torch_cpu PATHS "${_lib}" NO_DEFAULT_PATH)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_C10 LibTorch_CPU)

# Directories the loader needs: torch/lib, then NVIDIA's wheels beside it (nvidia/cu13/lib, nvidia/nccl/lib, ...).
get_filename_component(_site "${LIBTORCH_ROOT}" DIRECTORY)
file(GLOB _nv LIST_DIRECTORIES true "${_site}/nvidia/*/lib")
set(LibTorch_RUNTIME_DIRS "${_lib}" ${_nv})

if(LibTorch_CPU AND NOT TARGET torch::cpu)
  add_library(torch::c10 SHARED IMPORTED)
  set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION "${LibTorch_C10}")
  add_library(torch::cpu SHARED IMPORTED)
  set_target_properties(torch::cpu PROPERTIES
    IMPORTED_LOCATION "${LibTorch_CPU}"
    # -idirafter, not -isystem: the wheel's include/ carries its own fmt 12 (and dnnl, pybind11), which would shadow
    # the system's fmt and leave fmt::v12 symbols unresolved at link time. Warnings are off in it, as in -isystem.
    # C++ only: keep ATen out of .cu and .hip files (35 s instead of 2 s a file). api/include has torch/torch.h.
    # -fopenmp: without it at::parallel_for, which is inline, is a serial loop. A flag and not OpenMP::OpenMP_CXX: at run
    # time the rpath finds torch's own libgomp.so.1, and CMake would warn that it hides gcc's.
    INTERFACE_COMPILE_OPTIONS
      "$<$<COMPILE_LANGUAGE:CXX>:-fopenmp>;$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${LibTorch_INCLUDE_DIR} -idirafter ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include>"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES torch::c10)
  # torch_cpu NEEDs libcudart/libcupti in a CUDA wheel: let the linker find them where the loader will, and do not
  # fail a link on symbols that shared libraries want from each other (libtorch_nvshmem -> libnvshmem_host).
  # --disable-new-dtags writes DT_RPATH: it also covers the libraries' own dependencies, DT_RUNPATH does not.
  set(_opts -fopenmp "LINKER:--allow-shlib-undefined" "LINKER:--disable-new-dtags")
  foreach(_d IN LISTS LibTorch_RUNTIME_DIRS)
    list(APPEND _opts "LINKER:-rpath-link,${_d}")
  endforeach()
  set_property(TARGET torch::cpu PROPERTY INTERFACE_LINK_OPTIONS ${_opts})
  set(LibTorch_CPU_FOUND TRUE)
endif()

if("CUDA" IN_LIST LibTorch_FIND_COMPONENTS AND TARGET torch::cpu)
  find_library(LibTorch_C10_CUDA c10_cuda PATHS "${_lib}" NO_DEFAULT_PATH)
  find_library(LibTorch_CUDA torch_cuda PATHS "${_lib}" NO_DEFAULT_PATH)
  mark_as_advanced(LibTorch_C10_CUDA LibTorch_CUDA)
  find_package(CUDAToolkit QUIET)
  if(LibTorch_CUDA AND CUDAToolkit_FOUND)
    add_library(torch::c10_cuda SHARED IMPORTED)
    set_target_properties(torch::c10_cuda PROPERTIES IMPORTED_LOCATION "${LibTorch_C10_CUDA}")
    add_library(torch::cuda SHARED IMPORTED)
    set_target_properties(torch::cuda PROPERTIES
      IMPORTED_LOCATION "${LibTorch_CUDA}"
      INTERFACE_LINK_LIBRARIES "torch::cpu;torch::c10_cuda;CUDA::cudart")
    # A program names no symbol of torch_cuda (its kernels register themselves in static constructors), so
    # --as-needed (Debian's gcc does not default to it, Ubuntu's does) would drop the library.
    set_property(TARGET torch::cuda PROPERTY INTERFACE_LINK_OPTIONS
      "LINKER:--push-state,--no-as-needed,${LibTorch_CUDA},--pop-state")
    set(LibTorch_CUDA_FOUND TRUE)
  endif()
endif()

if("Gloo" IN_LIST LibTorch_FIND_COMPONENTS AND TARGET torch::cpu)
  find_path(LibTorch_GLOO_INCLUDE_DIR gloo/algorithm.h)  # Debian: libgloo-dev, headers only; the code is in torch_cpu
  mark_as_advanced(LibTorch_GLOO_INCLUDE_DIR)
  if(LibTorch_GLOO_INCLUDE_DIR)
    add_library(torch::gloo INTERFACE IMPORTED)
    set_target_properties(torch::gloo PROPERTIES
      INTERFACE_COMPILE_DEFINITIONS "USE_C10D_GLOO;USE_DISTRIBUTED" INTERFACE_LINK_LIBRARIES torch::cpu)
    if(NOT LibTorch_GLOO_INCLUDE_DIR STREQUAL "/usr/include")
      set_property(TARGET torch::gloo PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_GLOO_INCLUDE_DIR}")
    endif()
    set(LibTorch_Gloo_FOUND TRUE)
  endif()
endif()

if("NCCL" IN_LIST LibTorch_FIND_COMPONENTS AND TARGET torch::cuda)
  find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h
    HINTS "${_site}/nvidia/nccl/include" ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(LibTorch_NCCL_INCLUDE_DIR)
  if(LibTorch_NCCL_INCLUDE_DIR)
    add_library(torch::nccl INTERFACE IMPORTED)
    set_target_properties(torch::nccl PROPERTIES
      INTERFACE_COMPILE_DEFINITIONS "USE_C10D_NCCL;USE_DISTRIBUTED"
      INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_NCCL_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES torch::cuda)  # ProcessGroupNCCL's code is in torch_cuda
    set(LibTorch_NCCL_FOUND TRUE)
  endif()
endif()

find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU LibTorch_C10 LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION HANDLE_COMPONENTS)

# rpath of everything linked in this project: build tree and install tree alike
list(APPEND CMAKE_BUILD_RPATH ${LibTorch_RUNTIME_DIRS})
list(APPEND CMAKE_INSTALL_RPATH ${LibTorch_RUNTIME_DIRS})
