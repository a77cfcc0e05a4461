"""The Op of loops, under PyTensor's path."""

from engine.inner.scan import Scan
from engine.inner.scan_info import ScanInfo

__all__ = ["Scan", "ScanInfo"]
