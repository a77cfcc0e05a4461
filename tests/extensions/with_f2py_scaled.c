/* What with_f2py.pyf wraps, as if it were Fortran: few machines have its compiler. */
#ifndef FACTOR
#define FACTOR 2.0
#endif

double scaled(double x) { return FACTOR * x; }
