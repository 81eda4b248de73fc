// What is known of a call, a run or a packet, as pairs of words; names only ever become text.
import { CORRUPTED, DUPLICATE, LATE, LOST, REORDERED } from './model.js';
import { element, grouped, momentText, timeText } from './words.js';

export function factsOf(model, { kind, id }) {
  return { call: callFacts, run: runFacts, packet: packetFacts }[kind](model, id);
}

function both(model, ticks) {
  return `${timeText(model.ns(ticks))} (${grouped(ticks)} tsc)`;
}

function callFacts(model, id) {
  const { entry, ticks, function: of } = model.calls;
  const f = model.data.functions[of[id]] ?? { name: 'unknown' };
  const [lane, place] = model.laneOfCall(id);
  const callees = model.callees(lane, place);
  const inCallees = callees.reduce((sum, callee) => sum + ticks[callee], 0);
  const own = ticks[id] - inCallees;
  const rows = [
    ['call', f.name],
    ['module', model.modules.get(f.module)?.name ?? 'unknown'],
    ['took', `${both(model, ticks[id])}, as measured`],
    ['itself', `${both(model, own)} without its ${grouped(callees.length)} measured callees`],
  ];
  const { cost } = model.data;
  if (cost) {
    const corrected = own - cost.bias - callees.length * (cost.pair - cost.bias);
    rows.push(['corrected', `${both(model, corrected)} itself, without the probes' cost`]);
  }
  rows.push(['began', momentText(model.ns(entry[id]))], ['thread', model.thread(lane.thread).name], ['depth', `${lane.depth}`]);
  if (f.file) rows.push(['source', `${f.file}:${f.line ?? '?'}`]);
  const run = model.runOf(lane.thread, entry[id], entry[id] + ticks[id]);
  if (run >= 0) rows.push(['run', `${model.runs.ix[run]}`, { kind: 'run', id: run }], ...packetsOf(model, run));
  return rows;
}

function packetsOf(model, run) {
  const packets = model.packetsOfRun.get(model.runs.ix[run]) ?? [];
  const shown = packets.slice(0, 12).map((id) => ['packet', `${model.packets.seq[id]}`, { kind: 'packet', id }]);
  if (packets.length > 12) shown.push(['packets', `${packets.length - 12} more`]);
  return shown;
}

function runFacts(model, id) {
  const r = model.runs;
  const packets = model.packetsOfRun.get(r.ix[id]) ?? [];
  const rows = [
    ['run', `${r.ix[id]}`],
    ['took', `${both(model, r.ticks[id])}, as measured`],
    ['began', momentText(model.ns(r.start[id]))],
    ['thread', model.thread(r.thread[id]).name],
    ['calls', grouped(r.calls[id])],
    ['packets', grouped(packets.length)],
  ];
  if (r.off_cpu[id] > 0) rows.push(['off CPU', both(model, r.off_cpu[id])]);
  if (!r.complete[id]) rows.push(['incomplete', 'not known whole: records lost, or no exit seen']);
  return [...rows, ...packetsOf(model, id)];
}

function packetFacts(model, id) {
  const p = model.packets;
  const flags = p.flags[id];
  const stream = model.streamOf.get(p.stream[id])?.name ?? `#${p.stream[id]}`;
  const rows = [['packet', `${p.seq[id]}`]];
  if (flags & LOST) rows.push(['latency', 'lost: it never arrived']);
  else {
    rows.push(['latency', `${both(model, p.latency[id])}, from when it should have left`]);
    rows.push(['transit', `${both(model, p.latency[id] - p.left_after[id])}, from when it left`]);
  }
  rows.push(
    ['due', momentText(model.ns(p.intended[id]))],
    ['left', `${timeText(model.ns(p.left_after[id]))} after it was due`],
    ['flow', `${p.flow[id]}`], ['bytes', grouped(p.bytes[id])], ['stream', stream],
  );
  const words = [[LATE, 'sent late by the generator'], [DUPLICATE, 'a further arrival'],
    [REORDERED, 'overtaken by a later packet'], [CORRUPTED, 'its content was changed']];
  for (const [flag, word] of words) if (flags & flag) rows.push(['note', word]);
  const run = p.run[id] < 0 ? undefined : model.runAt.get(p.run[id]);
  if (run !== undefined) {
    const waited = model.runs.start[run] - (p.intended[id] + p.left_after[id]);
    rows.push(['run', `${p.run[id]}, which began ${timeText(model.ns(waited))} after it left`, { kind: 'run', id: run }]);
    const mates = (model.packetsOfRun.get(p.run[id]) ?? []).length - 1;
    rows.push(['batch', mates > 0 ? `with ${grouped(mates)} other packets` : 'alone in its run']);
  }
  return rows;
}

/// Fills a list with facts; those that name another thing become buttons.
export function tell(box, rows, go = null) {
  box.replaceChildren(...rows.flatMap(([label, text, item]) => {
    const what = element('dd');
    if (item && go) {
      const button = element('button', text, { type: 'button' });
      button.addEventListener('click', () => go(item));
      what.append(button);
    } else what.textContent = text;
    return [element('dt', label), what];
  }));
}
