"""From a kernel in the loop language to object code."""
