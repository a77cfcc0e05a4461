"""Signal processing: convolutions. `pt.signal.convolve1d(x, kernel)`."""

from engine.tensor.signal.conv import Convolve1d, Convolve2d, convolve1d, convolve2d

__all__ = ["Convolve1d", "Convolve2d", "convolve1d", "convolve2d"]
