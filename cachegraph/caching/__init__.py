"""The steps of a cache: looking up, building, writing and recording; and what they return."""
