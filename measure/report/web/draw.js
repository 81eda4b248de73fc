// Drawing lanes on a canvas: rectangles for calls and runs, lines for packets. Where several things
// fall on one pixel the largest is drawn, and how much of the pixel's time was busy is its strength.
import { lowerBound } from './lane.js';
import { DUPLICATE, LATE, LOST } from './model.js';
import { offsetText, momentText, roundStep, timeText } from './words.js';

export const ROW = 17;
const GAP = 1;
const PLOT = 84;
const LINE = 7;
export const RULER = 22;

/// Where everything is: blocks from top to bottom.
export function layout(model) {
  const blocks = [{ kind: 'ruler', y: 0, h: RULER }];
  let y = RULER + 4;
  const add = (kind, h, more) => {
    blocks.push({ kind, y, h, ...more });
    y += h;
  };
  for (const thread of model.threads) {
    add('title', 17, { text: thread.name });
    if (thread.runs) add('runs', 10, { lane: thread.runs, text: 'runs' });
    for (const lane of thread.calls) if (lane) add('calls', ROW, { lane });
    y += 8;
  }
  for (const stream of model.streams) {
    add('title', 17, { text: `packets ${stream.name}` });
    add('plot', PLOT, { lane: stream.all, stream, text: 'latency' });
    y += 4;
    for (const lane of stream.rows) add('packets', LINE, { lane, stream });
    y += 8;
  }
  return { blocks, height: y };
}

/// What both kinds of rectangles share. `each(x0, x1, place, strength)`.
function forEachShown(lane, frame, each) {
  const [low, high] = lane.range(frame.from, frame.to);
  const perPixel = (frame.to - frame.from) / frame.width;
  const x = (t) => frame.left + (t - frame.from) / perPixel;
  const right = frame.left + frame.width;
  if (high - low <= frame.width * 2) {
    for (let i = low; i < high; i++) {
      if (lane.end[i] < frame.from) continue;
      each(Math.max(frame.left, x(lane.start[i])), Math.min(right, x(lane.end[i])), i, 1);
    }
    return;
  }
  for (let i = low; i < high;) {
    const pixel = Math.max(0, Math.floor((lane.start[i] - frame.from) / perPixel));
    const next = lowerBound(lane.start, frame.from + (pixel + 1) * perPixel, i + 1, high);
    const place = lane.extreme(lane.largest, i, next);
    const busy = (lane.busy[next] - lane.busy[i]) / perPixel;
    const x0 = frame.left + pixel;
    each(x0, Math.min(right, Math.max(x0 + 1, x(lane.end[place]))), place, Math.min(1, busy));
    i = next;
  }
}

export function drawCalls(ctx, block, frame, model, colours) {
  const { lane, y, h } = block;
  const { function: of } = model.calls;
  ctx.textBaseline = 'middle';
  forEachShown(lane, frame, (x0, x1, place, strength) => {
    const id = lane.first + place;
    const width = x1 - x0;
    ctx.globalAlpha = 0.35 + 0.65 * strength;
    ctx.fillStyle = colours.module[model.hueOf[of[id]] ?? 0];
    ctx.fillRect(x0, y, Math.max(0.75, width - (width > 3 ? 0.6 : 0)), h - GAP);
    ctx.globalAlpha = 1;
    if (width > 26) label(ctx, model.data.functions[of[id]]?.name ?? '?', x0 + 3, y + h / 2, width - 6, colours.ink);
  });
}

export function label(ctx, text, x, y, room, colour) {
  const most = Math.floor(room / 6.1);
  if (most < 2) return;
  ctx.fillStyle = colour;
  ctx.fillText(text.length <= most ? text : `${text.slice(0, most - 1)}…`, x, y);
}

export function drawRuns(ctx, block, frame, model, colours) {
  const { lane, y, h } = block;
  ctx.fillStyle = colours.run;
  forEachShown(lane, frame, (x0, x1, place, strength) => {
    // Neighbours without a gap are told apart by their shade.
    ctx.globalAlpha = (place % 2 ? 0.55 : 0.95) * (0.4 + 0.6 * strength);
    ctx.fillRect(x0, y, Math.max(0.75, x1 - x0 - 0.5), h - 3);
  });
  ctx.globalAlpha = 1;
}

export function drawPackets(ctx, block, frame, model, colours) {
  const { lane, y, h } = block;
  const p = model.packets;
  // Neighbours of one colour become one rectangle: most of a long recording is.
  let colour = null;
  let from = 0;
  let to = 0;
  const flush = () => {
    if (colour === null) return;
    ctx.fillStyle = colour;
    ctx.fillRect(from, y + 1, to - from, h - 3);
  };
  forEachShown(lane, frame, (x0, x1, place) => {
    const id = model.id(lane, place);
    if (p.flags[id] & LOST) {
      ctx.fillStyle = colours.bad;
      ctx.fillRect(x0 - 1.5, y, 4, h - 1);
      return;
    }
    const own = colours.latency(model.lateness(p.latency[id]));
    const end = Math.max(x0 + 1, x1);
    if (own === colour && x0 <= to + 0.01) to = Math.max(to, end);
    else {
      flush();
      [colour, from, to] = [own, x0, end];
    }
    if (end - x0 > 12) {
      ctx.fillStyle = own;
      ctx.fillRect(x0, y, 1, h - 1);
      ctx.fillRect(end - 2, y, 2, h - 1);
      if (p.flags[id] & (LATE | DUPLICATE)) {
        flush();
        ctx.fillStyle = colours.text;
        ctx.fillRect(x0, y + h / 2 - 0.5, end - x0, 1);
        colour = null;
      }
    }
  });
  flush();
}

/// Where a latency lies on the plot's logarithmic axis.
export function plotY(model, block, ticks) {
  const { low, high } = model.latency;
  const [a, b] = [Math.log(Math.max(1, low) / 1.2), Math.log(Math.max(2, high) * 1.2)];
  const part = (Math.log(Math.max(1, ticks)) - a) / (b - a);
  return block.y + block.h - 3 - Math.max(0, Math.min(1, part)) * (block.h - 8);
}

export function drawPlot(ctx, block, frame, model, colours) {
  const { lane } = block;
  const p = model.packets;
  plotGrid(ctx, block, frame, model, colours);
  const [low, high] = [lowerBound(lane.start, frame.from), lowerBound(lane.start, frame.to)];
  const perPixel = (frame.to - frame.from) / frame.width;
  const lost = (x) => {
    ctx.fillStyle = colours.bad;
    ctx.fillRect(x - 1, block.y, 3, 4);
  };
  const few = high - low <= frame.width;
  for (let i = low; i < high;) {
    const pixel = Math.floor((lane.start[i] - frame.from) / perPixel);
    const x = frame.left + pixel;
    const next = few ? i + 1 : lowerBound(lane.start, frame.from + (pixel + 1) * perPixel, i + 1, high);
    const worst = lane.extreme(lane.largest, i, next);
    const best = lane.extreme(lane.smallest, i, next);
    if (lane.size[worst] === Infinity) lost(x);
    if (lane.size[best] !== Infinity) {
      const bottom = plotY(model, block, lane.size[best]);
      const slowest = lane.size[worst] === Infinity ? largestThatCame(lane, i, next) : lane.size[worst];
      const top = plotY(model, block, slowest);
      ctx.fillStyle = colours.latency(model.lateness(slowest));
      if (few) ctx.fillRect(x - 1, top - 1, 3, 3);
      else ctx.fillRect(x, top, 1, Math.max(2, bottom - top));
    }
    i = next;
  }
  return p;
}

function largestThatCame(lane, low, high) {
  let most = 0;
  for (let i = low; i < high; i++) if (lane.size[i] !== Infinity) most = Math.max(most, lane.size[i]);
  return most;
}

function plotGrid(ctx, block, frame, model, colours) {
  ctx.fillStyle = colours.panel;
  ctx.fillRect(frame.left, block.y, frame.width, block.h);
  if (!model.latency) return;
  ctx.textBaseline = 'middle';
  const { low, high } = model.latency;
  let above = Infinity;
  const line = (ns) => {
    const y = plotY(model, block, ns / model.nsPerTick);
    if (above - y < 13) return;
    above = y;
    ctx.fillStyle = colours.grid;
    ctx.fillRect(frame.left, Math.round(y), frame.width, 1);
    ctx.fillStyle = colours.dim;
    ctx.textAlign = 'right';
    ctx.fillText(timeText(ns).replace(/\.0+ /, ' '), frame.left - 6, y);
    ctx.textAlign = 'left';
  };
  const round = [];
  for (let power = Math.floor(Math.log10(model.ns(low)) - 1); power <= Math.log10(model.ns(high)) + 1; power++) {
    for (const times of [1, 3]) {
      const ticks = (times * 10 ** power) / model.nsPerTick;
      if (ticks >= low / 1.2 && ticks <= high * 1.2) round.push(times * 10 ** power);
    }
  }
  // Where there is no round number, the ends themselves.
  (round.length > 1 ? round : [model.ns(low), model.ns(high)]).forEach(line);
}

/// The ruler counts from a round moment that its left end names.
export function drawRuler(ctx, frame, height, model, colours) {
  const from = model.ns(frame.from);
  const to = model.ns(frame.to);
  const step = roundStep((to - from) / Math.max(2, frame.width / 110));
  const origin = from < 0 ? 0 : Math.floor(from / (step * 100)) * step * 100;
  ctx.textBaseline = 'middle';
  ctx.font = colours.font;
  for (let ns = Math.ceil(from / step) * step; ns <= to; ns += step) {
    const x = Math.round(frame.left + ((ns - from) / (to - from)) * frame.width);
    ctx.fillStyle = colours.grid;
    ctx.fillRect(x, RULER - 5, 1, height - RULER + 5);
    ctx.fillStyle = colours.dim;
    ctx.fillText(`${ns < origin ? '' : '+'}${offsetText(ns - origin, step)}`, x + 3, RULER / 2);
  }
  ctx.fillStyle = colours.back;
  ctx.fillRect(0, 0, frame.left, RULER);
  ctx.fillStyle = colours.text;
  ctx.fillText(momentText(origin), 4, RULER / 2);
}

/// Parts of the time whose calls and packets are not in the page.
export function drawAbsent(ctx, frame, top, height, windows, colours) {
  if (!windows) return;
  const x = (t) => frame.left + ((t - frame.from) / (frame.to - frame.from)) * frame.width;
  const clamp = (v) => Math.max(frame.left, Math.min(frame.left + frame.width, v));
  let at = frame.left;
  ctx.fillStyle = colours.veil;
  const veil = (to) => {
    if (to - at < 1) return;
    ctx.fillRect(at, top, to - at, height - top);
    if (to - at > 330) {
      ctx.fillStyle = colours.dim;
      ctx.fillText('only in the overview: not in this page one by one', at + 12, top + 9);
      ctx.fillStyle = colours.veil;
    }
  };
  for (const [from, to] of windows) {
    veil(clamp(x(from)));
    at = Math.max(at, clamp(x(to)));
  }
  veil(frame.left + frame.width);
}
