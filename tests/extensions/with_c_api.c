/* Python's C API by hand: functions, and a class that has methods. Compiled with NAME, the name of the module. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef FACTOR
#define FACTOR 2.0
#endif

#define JOINED(a, b) a##b
#define INIT(name) JOINED(PyInit_, name)
#define QUOTED(name) #name
#define TEXT(name) QUOTED(name)

static PyObject *scaled(PyObject *self, PyObject *x) {
    double value = PyFloat_AsDouble(x);
    if (value == -1.0 && PyErr_Occurred()) return NULL;
    return PyFloat_FromDouble(FACTOR * value);
}

static PyMethodDef of_scale[] = {
    {"apply", scaled, METH_O, NULL},
    {"still", scaled, METH_O | METH_STATIC, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject Scale = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = TEXT(NAME) ".Scale",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_methods = of_scale,
};

static PyMethodDef functions[] = {
    {"scaled", scaled, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(NAME), NULL, -1, functions, NULL, NULL, NULL, NULL};

/* A module within a module that the import system never hears of. */
static struct PyModuleDef inner = {PyModuleDef_HEAD_INIT, TEXT(NAME) ".inner", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC INIT(NAME)(void) {
    if (PyType_Ready(&Scale) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL) return NULL;
    PyObject *unit = PyObject_CallNoArgs((PyObject *)&Scale);
    if (PyModule_AddObjectRef(made, "Scale", (PyObject *)&Scale) < 0 || PyModule_AddObject(made, "unit", unit) < 0 ||
        PyModule_AddObject(made, "inner", PyModule_Create(&inner)) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
