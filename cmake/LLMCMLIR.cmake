# Finds MLIR 22.1 (Debian: libmlir-22-dev) and defines the wrapper for libraries that include its headers.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(LLMC_MLIR_INCLUDES ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
set(LLMC_MLIR_DEFINITIONS ${LLVM_DEFINITIONS})
separate_arguments(LLMC_MLIR_DEFINITIONS)

# llmc_tablegen(TARGET file.td out1 "-gen-..." out2 "-gen-..." ...): outputs land in the mirrored build folder.
function(llmc_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  list(GET MLIR_INCLUDE_DIRS 0 MLIR_INCLUDE_DIR)
  set(args ${ARGN})
  set(TABLEGEN_OUTPUT)
  while(args)
    list(POP_FRONT args out flags)
    separate_arguments(flags)
    mlir_tablegen(${out} ${flags} -I ${CMAKE_SOURCE_DIR} -I ${MLIR_INCLUDE_DIR})
  endwhile()
  add_custom_target(${target} DEPENDS ${TABLEGEN_OUTPUT})
endfunction()

# One precompiled header for all MLIR translation units: halves the build on two cores.
function(llmc_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} SYSTEM PUBLIC ${LLMC_MLIR_INCLUDES})
  target_compile_definitions(${name} PUBLIC ${LLMC_MLIR_DEFINITIONS})
  target_compile_options(${name} PRIVATE ${LLMC_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM) # the shared libraries
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(TARGET llmc-pch)
    target_precompile_headers(${name} REUSE_FROM llmc-pch)
  endif()
endfunction()

# The shared precompiled header (an otherwise empty library).
add_library(llmc-pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
target_include_directories(llmc-pch SYSTEM PUBLIC ${LLMC_MLIR_INCLUDES})
target_compile_definitions(llmc-pch PUBLIC ${LLMC_MLIR_DEFINITIONS})
target_compile_options(llmc-pch PRIVATE ${LLMC_WARNINGS})
target_precompile_headers(llmc-pch PRIVATE
  <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/BuiltinAttributes.h>
  <mlir/IR/PatternMatch.h> <mlir/Pass/Pass.h> <mlir/Transforms/DialectConversion.h>
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/SCF/IR/SCF.h>)
