# cython: language_level=3, binding=True
"""def, cpdef and fused functions, methods of classes."""

cimport cython

cdef extern from *:
    """
    #ifndef FACTOR
    #define FACTOR 2.0
    #endif
    """
    double FACTOR


def scaled(double x):
    return FACTOR * x


cpdef double typed(double x):
    return FACTOR * x


def fused(cython.floating x):
    return <cython.floating>FACTOR * x


cdef class Scale:
    def apply(self, double x):
        return FACTOR * x

    @staticmethod
    def still(double x):
        return FACTOR * x


unit = Scale()


def make_local():
    def local(double x):
        return FACTOR * x

    return local
