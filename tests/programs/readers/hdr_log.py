"""Reads an interval log with the HdrHistogram project's Python reader; prints what it holds by tag."""
import json
import sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram

tags = {}
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3_600_000_000_000, 3))
while True:
    one = reader.get_next_interval_histogram()
    if one is None:
        break
    tag = tags.setdefault(one.get_tag(), {"n": 0, "max": 0, "intervals": 0, "sum": 0.0})
    tag["n"] += one.get_total_count()
    tag["max"] = max(tag["max"], one.get_max_value())
    tag["sum"] += one.get_mean_value() * one.get_total_count()
    tag["intervals"] += 1
print(json.dumps(tags))
