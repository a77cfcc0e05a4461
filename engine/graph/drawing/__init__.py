"""Drawings of graphs as SVG: layered.py places boxes, picture.py chooses them, svg.py writes."""
