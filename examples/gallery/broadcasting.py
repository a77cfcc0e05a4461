"""Shapes that are stretched: rows and columns, dimshuffle, outer products, a table of distances."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

row = pt.row("row")
matrix = pt.matrix("matrix")
added = pytensor.function([row, matrix], row + matrix)([[0, 1, 2]], np.arange(6.0).reshape(2, 3))
is_broadcast = row.type.broadcastable

vector = pt.dvector("vector")
as_column = vector.dimshuffle(0, "x")
as_row = vector.dimshuffle("x", 0)
table = pytensor.function([vector], as_column * as_row)([1.0, 2.0, 3.0])
outer = pytensor.function([vector], pt.outer(vector, vector))([1.0, 2.0, 3.0])

points = pt.dmatrix("points")
squared = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
distances = pytensor.function([points], pt.sqrt(squared))([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])

cube = pt.tensor("cube", shape=(2, None, 3), dtype="float64")
moved = pytensor.function([cube], cube.transpose(2, 0, 1))(np.arange(12.0).reshape(2, 2, 3))
static_shape = cube.transpose(2, 0, 1).type.shape
stretched = pytensor.function([vector], pt.broadcast_to(vector, (2, 3)))([1.0, 2.0, 3.0])
squeezed = pytensor.function([row], row.squeeze())([[5.0, 6.0]])
swapped = pytensor.function([cube], pt.moveaxis(cube, 0, -1))(np.arange(12.0).reshape(2, 2, 3))
