"""Decodes a Perfetto trace with the official descriptors, rebuilds the slices as trace_processor
does (sort by time, an end ends the innermost slice of its track) and prints them as JSON."""
import json
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from google.protobuf.unknown_fields import UnknownFieldSet

trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())


def unknown(message):
    if len(UnknownFieldSet(message)) > 0:
        raise SystemExit(f"fields that the official descriptors lack: {message}")
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                unknown(one)


def note(annotation):
    return getattr(annotation, annotation.WhichOneof("value"))


unknown(trace)
names, tracks, events, clocks, defaults = {}, {}, [], [], None
for packet in trace.packet:
    if packet.sequence_flags & 1:
        names.clear()
        defaults = packet.trace_packet_defaults
    for name in packet.interned_data.event_names:
        names[name.iid] = name.name
    kind = packet.WhichOneof("data")
    if kind == "track_descriptor":
        d = packet.track_descriptor
        assert d.uuid not in tracks, f"track {d.uuid} twice"
        label = d.name or d.thread.thread_name or d.process.process_name
        tracks[d.uuid] = {"name": label, "tid": d.thread.tid, "pid": d.thread.pid or d.process.pid,
                          "parent": d.parent_uuid}
    elif kind == "clock_snapshot":
        clocks.append({c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks})
        assert packet.clock_snapshot.primary_trace_clock == 3
    elif kind == "track_event":
        assert defaults.timestamp_clock_id == 3, "times are CLOCK_MONOTONIC"
        e = packet.track_event
        assert e.track_uuid in tracks, f"no track {e.track_uuid}"
        assert not e.name_iid or e.name_iid in names, f"no name {e.name_iid}"
        events.append((packet.timestamp, names.get(e.name_iid, e.name), e))

events.sort(key=lambda e: e[0])
stacks, slices, instants, flows = {}, [], [], {}
for ts, name, e in events:
    notes = {a.name: note(a) for a in e.debug_annotations}
    stack = stacks.setdefault(e.track_uuid, [])
    where = None
    if e.type == 1:
        where = {"track": tracks[e.track_uuid], "name": name, "ts": ts, "dur": None,
                 "depth": len(stack), "parent": stack[-1]["notes"].get("call") if stack else None,
                 "notes": notes}
        slices.append(where)
        stack.append(where)
    elif e.type == 2:
        assert stack, f"an end without a begin on {tracks[e.track_uuid]}"
        ended = stack.pop()
        ended["dur"] = ts - ended["ts"]
        ended["notes"].update(notes)
    else:
        where = {"track": tracks[e.track_uuid], "name": name, "ts": ts, "notes": notes}
        instants.append(where)
    for flow in list(e.flow_ids) + list(e.terminating_flow_ids):
        flows.setdefault(flow, []).append({"ts": ts, "name": name,
                                           "track": tracks[e.track_uuid]["name"],
                                           "last": flow in e.terminating_flow_ids})
print(json.dumps({"slices": slices, "instants": instants, "clocks": clocks,
                  "flows": list(flows.values())}))
