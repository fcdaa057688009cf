// The precompiled header of every MLIR translation unit hangs on this file.
