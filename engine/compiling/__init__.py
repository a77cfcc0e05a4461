"""From a request to a function: described by a key, found in the cache or built, and kept there."""
