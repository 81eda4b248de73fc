// What there is to draw: lanes of calls by thread and depth, runs by thread, packets by stream.
import { columns } from './columns.js';
import { Lane, lowerBound } from './lane.js';
import { hue } from './colours.js';

/// Rows that the packets of a stream take turns in, so that neighbours are seen apart.
export const ROWS = 20;
export const LATE = 1, DUPLICATE = 2, REORDERED = 4, CORRUPTED = 8, LOST = 16;

export class Model {
  static async of(data) {
    const [calls, packets, runs] = await Promise.all([data.calls, data.packets, data.runs].map(columns));
    return new Model(data, calls, packets, runs);
  }

  constructor(data, calls, packets, runs) {
    Object.assign(this, { data, calls, packets, runs });
    this.nsPerTick = 1e9 / Math.max(1, data.hz);
    const byIx = (rows) => new Map(rows.map((row) => [row.ix, row]));
    this.modules = byIx(data.modules);
    this.threadOf = byIx(data.threads);
    this.streamOf = byIx(data.streams);
    this.hueOf = data.functions.map((f) => hue(f.module));
    this.threads = [];
    this.streams = [];
    this.callLanes();
    this.runLanes();
    this.packetLanes();
    this.latencyRange();
  }

  ns(ticks) {
    return ticks * this.nsPerTick;
  }

  callLanes() {
    let first = 0;
    for (const { thread, depth, n } of this.calls.lanes) {
      const start = this.calls.entry.subarray(first, first + n);
      const size = this.calls.ticks.subarray(first, first + n);
      const end = start.map((at, i) => at + size[i]);
      const lane = new Lane(start, end, size, null);
      Object.assign(lane, { kind: 'call', first, depth, thread });
      this.thread(thread).calls[depth] = lane;
      first += n;
    }
  }

  thread(ix) {
    let thread = this.threads.find((t) => t.ix === ix);
    if (!thread) {
      const name = this.threadOf.get(ix)?.name ?? `thread #${ix}`;
      thread = { ix, name, calls: [], runs: null };
      this.threads.push(thread);
    }
    return thread;
  }

  runLanes() {
    const { n, thread, start, ticks, ix } = this.runs;
    this.runAt = new Map();
    this.packetsOfRun = new Map();
    for (let i = 0; i < n; i++) this.runAt.set(ix[i], i);
    for (let low = 0; low < n;) {
      let high = low;
      while (high < n && thread[high] === thread[low]) high++;
      const begin = start.subarray(low, high);
      const size = ticks.subarray(low, high);
      const lane = new Lane(begin, begin.map((at, i) => at + size[i]), size, null);
      Object.assign(lane, { kind: 'run', first: low, thread: thread[low] });
      this.thread(thread[low]).runs = lane;
      low = high;
    }
  }

  packetLanes() {
    const p = this.packets;
    p.begin = p.intended.map((at, i) => Math.min(at, at + p.left_after[i]));
    p.end = p.intended.map((at, i) => (p.flags[i] & LOST ? at : at + p.latency[i]));
    for (let low = 0; low < p.n;) {
      let high = low;
      while (high < p.n && p.stream[high] === p.stream[low]) high++;
      const stream = { ix: p.stream[low], low, high };
      stream.name = this.streamOf.get(stream.ix)?.name ?? `stream #${stream.ix}`;
      stream.all = this.packetLane(low, high, 1);
      const rows = Math.min(ROWS, high - low);
      stream.rows = Array.from({ length: rows }, (_, row) => this.packetLane(low + row, high, rows));
      this.streams.push(stream);
      low = high;
    }
    for (let i = 0; i < p.n; i++) {
      if (p.run[i] < 0) continue;
      const list = this.packetsOfRun.get(p.run[i]);
      if (list) list.push(i);
      else this.packetsOfRun.set(p.run[i], [i]);
    }
  }

  packetLane(low, high, step) {
    const p = this.packets;
    const n = Math.max(0, Math.ceil((high - low) / step));
    const pick = (of) => Float64Array.from({ length: n }, (_, k) => of[low + k * step]);
    // A packet that never came is worse than any that did.
    const size = Float64Array.from({ length: n }, (_, k) => {
      const i = low + k * step;
      return p.flags[i] & LOST ? Infinity : p.latency[i];
    });
    const start = pick(p.begin);
    for (let k = 1; k < n; k++) start[k] = Math.max(start[k], start[k - 1]);
    const lane = new Lane(start, pick(p.end), size, { low, step });
    lane.kind = 'packet';
    return lane;
  }

  latencyRange() {
    const values = [];
    const p = this.packets;
    for (let i = 0; i < p.n; i++) {
      if (!(p.flags[i] & (LOST | DUPLICATE)) && p.latency[i] > 0) values.push(p.latency[i]);
    }
    values.sort((a, b) => a - b);
    const at = (part) => values[Math.floor(part * (values.length - 1))];
    this.latency = values.length ? { low: at(0), p50: at(0.5), high: at(1) } : null;
  }

  /// 0 for a latency as most have, 1 for the largest; twice the median at least makes a 1.
  lateness(ticks) {
    const { p50, high } = this.latency ?? { p50: 1, high: 1 };
    return ticks <= p50 ? 0 : Math.min(1, Math.log(ticks / p50) / Math.log(Math.max(2, high / p50)));
  }

  /// Number in the model of a thing in a lane.
  id(lane, place) {
    return lane.ids ? lane.ids.low + place * lane.ids.step : lane.first + place;
  }

  /// The packet with a sequence number; the first arrival when there are more. -1 for none.
  packetWith(seq, stream = null) {
    const p = this.packets;
    for (let i = 0; i < p.n; i++) {
      const right = p.seq[i] === seq && (stream === null || p.stream[i] === stream);
      if (right && !(p.flags[i] & DUPLICATE)) return i;
    }
    return -1;
  }

  /// The lane of a call and its place there.
  laneOfCall(id) {
    for (const thread of this.threads) {
      for (const lane of thread.calls) {
        if (lane && id >= lane.first && id < lane.first + lane.n) return [lane, id - lane.first];
      }
    }
    return null;
  }

  /// Numbers of the measured calls that a call made itself.
  callees(lane, place) {
    const below = this.thread(lane.thread).calls[lane.depth + 1];
    if (!below) return [];
    const [from, to] = [lane.start[place], lane.end[place]];
    const found = [];
    for (let i = lowerBound(below.start, from); i < below.n && below.start[i] <= to; i++) {
      if (below.end[i] <= to) found.push(below.first + i);
    }
    return found;
  }

  /// The run that a moment of a thread belongs to; -1 for none.
  runOf(thread, from, to) {
    const lane = this.thread(thread).runs;
    if (!lane) return -1;
    const place = lane.at(from, to);
    return place < 0 || lane.start[place] > from || lane.end[place] < to ? -1 : lane.first + place;
  }
}
