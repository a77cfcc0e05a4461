"""Elementary functions (exp, log, sin, erf, ...) as LLVM IR that the loop vectorizer can vectorize."""
