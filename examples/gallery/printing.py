"""Graphs as text, and values printed while a function runs."""

import io

import engine as pytensor
import engine.tensor as pt

x = pt.dscalar("x")
y = pt.dscalar("y")
out = (x + y) * y / x
text = pytensor.printing.pp(out)
file = io.StringIO()
pytensor.dprint(out, file=file)
has_both_inputs = all(name in file.getvalue() for name in "xy")

seen = []
watched = pytensor.printing.Print("sum", global_fn=lambda op, value: seen.append(float(value)))(x + y)
value = pytensor.function([x, y], watched**2)(1.5, 2.5)

compiled = pytensor.function([x, y], out)
printed = io.StringIO()
pytensor.dprint(compiled, file=printed)
is_printed = len(printed.getvalue()) > 0
