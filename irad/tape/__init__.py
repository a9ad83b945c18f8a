"""Recording functions that launch kernels, running the record on other memory, and both modes of differentiation.

``function.RecordedFunction`` is the entrance for right-hand sides f(du, u, p, t); ``values.Value`` is what a loss
function computes with.
"""
