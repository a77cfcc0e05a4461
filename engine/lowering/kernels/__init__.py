"""The families of kernels: each module turns a plain description into a `Kernel` of the loop language.

What to pass for a parameter is said by `Kernel.arguments`, one tuple a parameter:

    ("input", i)            address of operand i's first element
    ("output", k)           address of output k, C-contiguous
    ("extent", (d, ...))    product of the lengths of these dims of the nest (1 for none)
    ("stride", i, d)        how many elements operand i steps along dim d
    ("details",)            address of three int64 that say more about a failure
"""
