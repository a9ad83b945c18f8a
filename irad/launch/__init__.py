"""Launching compiled programs on NumPy arrays.

A *block* of 64-bit words describes one launch (``block.py``); an *executable* knows a program's plan and sweeps
(``executable.py``). The ordinary call goes through compiled code that serves all kernels (``launcher.py``), a launch
that is to be repeated is bound (``bound.py``), and both run tiles on threads (``threads.py``). What Python and compiled
code tell each other stands in tables of words (``tables.py``); the compiled code itself is in the files ``ir_*.py``.
"""
