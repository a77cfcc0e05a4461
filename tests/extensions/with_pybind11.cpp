// Every place that pybind11 puts a function in. Compiled with NAME, the name of the module, for each pybind11 tested.
#include <pybind11/pybind11.h>

namespace py = pybind11;

#ifndef FACTOR
#define FACTOR 2.0
#endif

struct Scale {
    explicit Scale(double factor) : factor(factor) {}
    double apply(double x) const { return factor * x; }
    static double still(double x) { return FACTOR * x; }
    double factor;
};

static double scaled(double x) { return FACTOR * x; }

PYBIND11_MODULE(NAME, m) {
    m.def("scaled", &scaled);
    m.def("overloaded", [](py::int_ x) { return x.cast<long>() * long(FACTOR); });
    m.def("overloaded", [](py::float_ x) { return x.cast<double>() * FACTOR; });
    m.def_submodule("inner").def("scaled", [](double x) { return FACTOR * x; });
    py::class_<Scale>(m, "Scale")
        .def(py::init<double>())
        .def("apply", &Scale::apply)
        .def_static("still", &Scale::still);
    m.attr("unit") = Scale(FACTOR);
    m.def("make_lambda", [] { return py::cpp_function([](double x) { return FACTOR * x; }); });
}
