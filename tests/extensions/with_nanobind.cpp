// Every place that nanobind puts a function in.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

#ifndef FACTOR
#define FACTOR 2.0
#endif

struct Scale {
    explicit Scale(double factor) : factor(factor) {}
    double apply(double x) const { return factor * x; }
    static double still(double x) { return FACTOR * x; }
    double factor;
};

NB_MODULE(with_nanobind, m) {
    m.def("scaled", [](double x) { return FACTOR * x; });
    m.def("overloaded", [](nb::int_ x) { return nb::cast<long>(x) * long(FACTOR); });
    m.def("overloaded", [](nb::float_ x) { return nb::cast<double>(x) * FACTOR; });
    m.def_submodule("inner").def("scaled", [](double x) { return FACTOR * x; });
    nb::class_<Scale>(m, "Scale")
        .def(nb::init<double>())
        .def("apply", &Scale::apply)
        .def_static("still", &Scale::still);
    m.attr("unit") = Scale(FACTOR);
    m.def("make_lambda", [] { return nb::cpp_function([](double x) { return FACTOR * x; }); });
}
