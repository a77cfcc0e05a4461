"""Linear algebra under an older path of PyTensor's: each name comes from engine.tensor.linalg, and warns."""

from engine.tensor.linalg.older_paths import older_path

__getattr__ = older_path("pytensor.tensor.nlinalg")
