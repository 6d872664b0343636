// CMake needs a source file to hang the precompiled header on.
