! A module of Fortran 90, which f2py puts within the module of Python, and a function outside of it.
#ifndef FACTOR
#define FACTOR 2.0
#endif

module inner
contains
    function scaled(x) result(y)
        double precision, intent(in) :: x
        double precision :: y
        y = FACTOR * x
    end function scaled
end module inner

function scaled(x) result(y)
    double precision, intent(in) :: x
    double precision :: y
    y = FACTOR * x
end function scaled
