// The timeline: what part of the time is seen, and what the mouse and the keys do with it.
import { palette } from './colours.js';
import { RULER, drawAbsent, drawCalls, drawPackets, drawPlot, drawRuler, drawRuns, layout, plotY } from './draw.js';
import { lowerBound } from './lane.js';
import { LOST } from './model.js';

const GUTTER = 132;
const MAP = 58;
/// Ticks: closer than this there is nothing to see.
const CLOSEST = 40;

export class Timeline {
  constructor(model, canvas, map, onHover, onPick) {
    Object.assign(this, { model, canvas, map, onHover, onPick });
    this.end = Math.max(1, model.data.end);
    this.view = { from: 0, to: this.end };
    this.picked = null;
    this.chain = null;
    this.onChain = () => {};
    this.hovered = null;
    this.layout = layout(model);
    this.listen();
    this.resize();
  }

  get frame() {
    return { ...this.view, left: GUTTER, width: Math.max(50, this.width - GUTTER - 4) };
  }

  x(t) {
    const f = this.frame;
    return f.left + ((t - f.from) / (f.to - f.from)) * f.width;
  }

  time(x) {
    const f = this.frame;
    return f.from + ((x - f.left) / f.width) * (f.to - f.from);
  }

  resize() {
    this.colours = palette();
    this.colours.font = '11px system-ui, sans-serif';
    this.width = this.canvas.parentElement.clientWidth;
    this.ctx = size(this.canvas, this.width, this.layout.height);
    this.mapCtx = size(this.map, this.width, MAP);
    this.overview = null;
    this.draw();
  }

  /// Draws before the next frame, however often it is asked for until then.
  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }

  drawNow() {
    const { ctx, model, colours, frame } = this;
    const started = performance.now();
    ctx.clearRect(0, 0, this.width, this.layout.height);
    ctx.font = colours.font;
    drawRuler(ctx, frame, this.layout.height, model, colours);
    const draw = { calls: drawCalls, runs: drawRuns, packets: drawPackets, plot: drawPlot };
    for (const block of this.layout.blocks) {
      draw[block.kind]?.(ctx, block, frame, model, colours);
    }
    this.drawGutter();
    drawAbsent(ctx, frame, RULER, this.layout.height, model.data.windows, colours);
    this.drawChain();
    this.drawPicked();
    this.drawMap();
    this.frameMs = performance.now() - started;
  }

  drawGutter() {
    const { ctx, colours } = this;
    ctx.textBaseline = 'middle';
    for (const block of this.layout.blocks) {
      const y = block.y + block.h / 2;
      if (block.kind === 'title') {
        ctx.fillStyle = colours.text;
        ctx.font = `600 ${colours.font}`;
        ctx.fillText(block.text, 4, y);
        ctx.font = colours.font;
      } else if (block.text) {
        ctx.fillStyle = colours.dim;
        ctx.fillText(block.text, 4, block.y + Math.min(block.h / 2, 9));
      }
    }
  }

  /// The runs that lead from a late packet back to what made it late; that one filled.
  drawChain() {
    if (!this.chain) return;
    const { ctx, colours, frame } = this;
    const right = frame.left + frame.width;
    for (const id of this.chain.runs) {
      const { from, to, y, h } = this.placeOf({ kind: 'run', id });
      const [x0, x1] = [Math.max(frame.left, this.x(from)), Math.min(right, this.x(to))];
      if (y === undefined || x1 < frame.left || x0 > right) continue;
      const width = Math.max(2, x1 - x0);
      if (id === this.chain.culprit) {
        ctx.fillStyle = colours.bad;
        ctx.fillRect(x0, y, width, h - 1);
      }
      ctx.strokeStyle = colours.pick;
      ctx.lineWidth = 2;
      ctx.strokeRect(x0, y, width, h - 1);
    }
  }

  drawPicked() {
    if (!this.picked) return;
    const { ctx, colours, frame } = this;
    const { from, to, y, h, plot } = this.placeOf(this.picked);
    const right = frame.left + frame.width;
    const clamp = (x) => Math.max(frame.left, Math.min(right, x));
    const [x0, x1] = [clamp(this.x(from)), clamp(this.x(to))];
    ctx.fillStyle = colours.pick;
    ctx.globalAlpha = 0.13;
    ctx.fillRect(x0, RULER, Math.max(1, x1 - x0), this.layout.height - RULER);
    ctx.globalAlpha = 1;
    if (y === undefined || this.x(to) < frame.left || this.x(from) > right) return;
    ctx.strokeStyle = colours.pick;
    ctx.lineWidth = 2;
    ctx.strokeRect(x0 - 1, y - 1, Math.max(3, x1 - x0 + 2), h + 1);
    if (plot !== undefined) {
      ctx.beginPath();
      ctx.arc(x0, plot, 5, 0, 7);
      ctx.stroke();
    }
  }

  /// Time and place on the canvas of something.
  placeOf({ kind, id }) {
    const { model } = this;
    const blockOf = (lane) => this.layout.blocks.find((block) => block.lane === lane && block.kind !== 'plot');
    if (kind === 'packet') {
      const p = model.packets;
      const stream = model.streams.find((s) => id >= s.low && id < s.high);
      const block = blockOf(stream.rows[(id - stream.low) % stream.rows.length]);
      const plotBlock = this.layout.blocks.find((b) => b.kind === 'plot' && b.stream === stream);
      const plot = p.flags[id] & LOST || !model.latency ? undefined : plotY(model, plotBlock, p.latency[id]);
      return { from: p.begin[id], to: p.end[id], y: block.y, h: block.h, plot };
    }
    if (kind === 'run') {
      const r = model.runs;
      const block = blockOf(model.thread(r.thread[id]).runs);
      return { from: r.start[id], to: r.start[id] + r.ticks[id], y: block?.y, h: block?.h };
    }
    const found = model.laneOfCall(id);
    if (!found) return { from: 0, to: 0 };
    const [lane, place] = found;
    const block = blockOf(lane);
    return { from: lane.start[place], to: lane.end[place], y: block.y, h: block.h };
  }

  /// The whole recording, and what part of it is seen.
  drawMap() {
    const { mapCtx: ctx, colours, map, width, frame } = this;
    if (!this.overview) {
      this.overview = document.createElement('canvas');
      const inner = size(this.overview, width, MAP);
      drawOverview(inner, this.model, { left: GUTTER, width: frame.width, end: this.end }, colours);
    }
    ctx.clearRect(0, 0, width, MAP);
    ctx.drawImage(this.overview, 0, 0, width, MAP);
    const x = (t) => GUTTER + (Math.max(0, Math.min(this.end, t)) / this.end) * frame.width;
    const [x0, x1] = [x(this.view.from), x(this.view.to)];
    ctx.fillStyle = colours.pick;
    ctx.globalAlpha = 0.18;
    ctx.fillRect(x0, 0, Math.max(2, x1 - x0), MAP);
    ctx.globalAlpha = 1;
    ctx.fillRect(x0, 0, 1.5, MAP);
    ctx.fillRect(Math.max(x0 + 1.5, x1 - 1.5), 0, 1.5, MAP);
    map.dataset.from = this.view.from;
    map.dataset.to = this.view.to;
  }

  /// Sees `from..to`, as far as there is anything.
  show(from, to) {
    const span = Math.max(CLOSEST, Math.min(this.end * 1.02, to - from));
    const margin = span * 0.5;
    const middle = Math.max(-margin + span / 2, Math.min(this.end + margin - span / 2, (from + to) / 2));
    this.view = { from: middle - span / 2, to: middle + span / 2 };
    this.draw();
  }

  zoom(factor, at = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    const span = Math.max(CLOSEST, Math.min(this.end * 1.02, (to - from) * factor));
    const part = (at - from) / (to - from);
    this.show(at - part * span, at + (1 - part) * span);
  }

  pan(part) {
    const step = (this.view.to - this.view.from) * part;
    this.show(this.view.from + step, this.view.to + step);
  }

  fit() {
    this.show(-this.end * 0.01, this.end * 1.01);
  }

  /// A late packet with what made it late; seen from the first of its runs to its arrival.
  pickChain(chain) {
    const packet = { kind: 'packet', id: chain.packet };
    this.chain = chain;
    this.pick(packet, false);
    const places = [packet, ...chain.runs.map((id) => ({ kind: 'run', id }))].map((item) => this.placeOf(item));
    const from = Math.min(...places.map((p) => p.from));
    const to = Math.max(...places.map((p) => p.to));
    this.show(from - (to - from) * 0.15, to + (to - from) * 0.15);
    this.canvas.scrollIntoView({ block: 'nearest' });
  }

  pick(item, look = true) {
    this.picked = item;
    // Its runs and calls may be looked at one by one; another packet has another chain.
    if (!item || (item.kind === 'packet' && item.id !== this.chain?.packet)) this.chain = null;
    this.onChain(this.chain);
    if (item && look) this.lookAt(item);
    this.onPick(item);
    this.draw();
  }

  /// With as much around it as shows what came before and after.
  lookAt(item) {
    const { from, to } = this.placeOf(item);
    let around = Math.max(CLOSEST, (to - from) * 2.5);
    if (item.kind === 'packet') {
      const p = this.model.packets;
      const near = (step) => p.begin[item.id + step] ?? from;
      around = Math.max(around, Math.min(near(10) - from, (to - from) * 40), Math.min(from - near(-10), (to - from) * 40));
    }
    this.show(from - around, to + around);
  }

  /// What lies under a point of the canvas.
  under(x, y) {
    const { model } = this;
    if (x < GUTTER) return null;
    const near = (this.view.to - this.view.from) / this.frame.width;
    const at = this.time(x);
    const block = this.layout.blocks.find((b) => b.lane && y >= b.y && y < b.y + b.h);
    if (!block) return null;
    if (block.kind === 'plot') return this.underPlot(block, x, y);
    const { lane } = block;
    const exact = lane.at(at, at + near * 0.01);
    const place = exact >= 0 ? exact : lane.at(at - 3 * near, at + 3 * near);
    return place < 0 ? null : { kind: lane.kind, id: model.id(lane, place) };
  }

  /// The packet whose point is nearest; of many on a few pixels the slowest.
  underPlot(block, x, y) {
    const { lane } = block;
    const [low, high] = [this.time(x - 4), this.time(x + 4)].map((t) => lowerBound(lane.start, t));
    if (low >= high || !this.model.latency) return null;
    let best = -1;
    let distance = Infinity;
    if (high - low <= 2000) {
      for (let i = low; i < high; i++) {
        const pointY = lane.size[i] === Infinity ? block.y + 2 : plotY(this.model, block, lane.size[i]);
        const d = Math.hypot(this.x(lane.start[i]) - x, pointY - y);
        if (d < distance) [best, distance] = [i, d];
      }
    } else best = lane.extreme(lane.largest, low, high);
    return best < 0 ? null : { kind: 'packet', id: this.model.id(lane, best) };
  }

  listen() {
    const { canvas, map } = this;
    let drag = null;
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener('wheel', (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 180), this.time(inside(event)[0]));
      } else if (sideways || event.shiftKey) {
        event.preventDefault();
        this.pan((sideways ? event.deltaX : event.deltaY) / this.frame.width);
      }
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      drag = { x: inside(event)[0], moved: 0, ...this.view };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      const [x, y] = inside(event);
      if (drag && event.buttons) {
        drag.moved = Math.max(drag.moved, Math.abs(x - drag.x));
        const step = ((drag.x - x) / this.frame.width) * (drag.to - drag.from);
        if (drag.moved > 3) this.show(drag.from + step, drag.to + step);
        return;
      }
      this.onHover(this.under(x, y), event.clientX, event.clientY);
    });
    canvas.addEventListener('pointerup', (event) => {
      const clicked = drag && drag.moved <= 3;
      drag = null;
      if (clicked) this.pick(this.under(...inside(event)), false);
    });
    canvas.addEventListener('pointerleave', () => this.onHover(null, 0, 0));
    canvas.addEventListener('dblclick', (event) => this.zoom(0.25, this.time(inside(event)[0])));
    const toMap = (event) => {
      if (!event.buttons) return;
      const x = event.clientX - map.getBoundingClientRect().left - GUTTER;
      const half = (this.view.to - this.view.from) / 2;
      const at = (x / this.frame.width) * this.end;
      this.show(at - half, at + half);
    };
    map.addEventListener('pointerdown', toMap);
    map.addEventListener('pointermove', toMap);
    for (const board of [canvas, map]) board.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => {
      if (canvas.parentElement.clientWidth !== this.width) this.resize();
    }).observe(canvas.parentElement);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.resize());
    for (const change of ['beforeprint', 'afterprint']) {
      addEventListener(change, () => {
        document.documentElement.classList.toggle('print', change === 'beforeprint');
        this.resize();
        this.drawNow();
      });
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), w: () => this.zoom(0.5), ArrowUp: () => this.zoom(0.5),
      '-': () => this.zoom(2), s: () => this.zoom(2), ArrowDown: () => this.zoom(2),
      ArrowLeft: () => this.pan(-0.25), a: () => this.pan(-0.25),
      ArrowRight: () => this.pan(0.25), d: () => this.pan(0.25),
      0: () => this.fit(), Home: () => this.fit(), Escape: () => this.pick(null),
      '.': () => this.step(1), ',': () => this.step(-1),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  /// The neighbour of what is picked.
  step(by) {
    if (!this.picked) return;
    const { kind, id } = this.picked;
    const { model } = this;
    const n = kind === 'packet' ? model.packets.n : kind === 'run' ? model.runs.n : 0;
    const found = kind === 'call' ? model.laneOfCall(id) : null;
    const ok = found ? found[1] + by >= 0 && found[1] + by < found[0].n : id + by >= 0 && id + by < n;
    if (ok) this.pick({ kind, id: id + by });
  }
}

function size(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext('2d');
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  return ctx;
}

/// Calls or packets a part of the time as an area, the latency's range as bars, losses in red.
function drawOverview(ctx, model, { left, width, end }, colours) {
  const o = model.data.overview;
  const n = o.calls.length;
  const packets = o.sent.some((v) => v > 0);
  const x = (bin) => left + (Math.min(end, bin * o.width) / end) * width;
  const amount = packets ? o.sent : o.calls;
  const most = Math.max(1, ...amount);
  ctx.font = colours.font;
  ctx.textBaseline = 'middle';
  ctx.fillStyle = colours.text;
  ctx.fillText('whole recording', 4, 12);
  ctx.fillStyle = colours.dim;
  ctx.fillText(packets ? 'p50…max latency' : 'longest call', 4, 27);
  ctx.fillText(packets ? 'packets' : 'calls', 4, MAP - 8);
  ctx.fillStyle = colours.panel;
  ctx.fillRect(left, 0, width, MAP);
  const low = packets ? o.p50 : o.longest;
  const high = packets ? o.max : o.longest;
  const all = high.filter((v) => v > 0);
  const [least, top] = [Math.min(...low.filter((v) => v > 0)), Math.max(...all)];
  const level = (v) => 38 - (Math.log(v / least) / Math.max(0.7, Math.log(top / least))) * 32;
  for (let bin = 0; bin < n; bin++) {
    const wide = Math.max(1, x(bin + 1) - x(bin));
    ctx.fillStyle = colours.grid;
    const height = (amount[bin] / most) * 16;
    ctx.fillRect(x(bin), MAP - height, wide, height);
    if (high[bin] > 0) {
      const y = level(high[bin]);
      ctx.fillStyle = packets ? colours.latency(model.lateness(high[bin])) : colours.first;
      ctx.fillRect(x(bin), y, wide, Math.max(1.5, level(Math.max(least, low[bin] ?? least)) - y));
    }
    if (o.lost[bin] > 0) {
      ctx.fillStyle = colours.bad;
      ctx.fillRect(x(bin), 0, Math.max(2, wide), 4);
    }
  }
}
