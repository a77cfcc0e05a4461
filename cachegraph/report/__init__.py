"""A report on a cache as one HTML page: contents.py gathers, timeline.py and decision_lines.py order a run,
page.py writes."""
