// A module in Python, with_swig, before an extension, _with_swig.
%module with_swig
%inline %{
#ifndef FACTOR
#define FACTOR 2.0
#endif

double scaled(double x) { return FACTOR * x; }
double overloaded(double x) { return FACTOR * x; }
double overloaded(const char *x) { return FACTOR * x[0]; }

struct Scale {
    double apply(double x) const { return FACTOR * x; }
    static double still(double x) { return FACTOR * x; }
};
%}
