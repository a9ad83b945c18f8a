"""LLVM text to machine code for this CPU: optimise, emit, keep, load."""
