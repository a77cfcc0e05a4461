"""Fingerprints: digests of the canonical encodings of values, equal for equal values in every process."""

from cachegraph.fingerprint.encoder import Encoder
from cachegraph.fingerprint.encoding import encode, fingerprint
from cachegraph.fingerprint.primitives import digest, strong_digest
from cachegraph.fingerprint.registry import register_encoder

__all__ = ["Encoder", "digest", "encode", "fingerprint", "register_encoder", "strong_digest"]
