"""Looks up every row of a percentile table in the same histogram as the HdrHistogram project's Python
library reads it from an interval log; prints values and count for each, and mean, deviation, maximum.
(Its own percentile tables step otherwise than those of the Java library.) Where a percentile is just
reached, rounding decides: both values are given."""
import json
import sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram

log, tag, table = sys.argv[1:]
whole = HdrHistogram(1, 3_600_000_000_000, 3)
reader = HistogramLogReader(log, HdrHistogram(1, 3_600_000_000_000, 3))
while (one := reader.get_next_interval_histogram()) is not None:
    if one.get_tag() == tag:
        whole.add(one)
counts = [(i.value_iterated_to, i.total_count_to_this_value) for i in whole.get_recorded_iterator()]
rows = []
for line in open(table):
    cells = line.split()
    if len(cells) < 3 or line.startswith("#") or cells[0] == "Value":
        continue
    share = float(cells[1]) * whole.get_total_count()
    values = [min([at for at, n in counts if n >= share + off], default=counts[-1][0]) for off in (-1e-6, 1e-6)]
    rows.append({"percentile": float(cells[1]), "values": values,
                 "count": max(count for at, count in counts if at <= float(cells[0]))})
print(json.dumps({"rows": rows, "mean": whole.get_mean_value(), "deviation": whole.get_stddev(),
                  "max": whole.get_max_value()}))
