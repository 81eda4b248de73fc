// A row of things with a begin and an end, ordered by begin. Finding what lies in a part of the time
// takes a binary search, and the largest of a range some steps through a pyramid of maxima, so that
// drawing costs as much as there are pixels, not as there are things.

const FAN = 16;

/// First place in a sorted array whose value is not below `value`.
export function lowerBound(array, value, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Lane {
  /// `size` ranks what is shown where many fall on one pixel; `ids` are numbers in the model.
  constructor(start, end, size, ids) {
    Object.assign(this, { start, end, size, ids, n: start.length });
    this.reach = end;
    for (let i = 1; i < this.n; i++) {
      if (end[i] < this.reach[i - 1]) {
        if (this.reach === end) this.reach = end.slice();
        this.reach[i] = this.reach[i - 1];
      }
    }
    this.busy = new Float64Array(this.n + 1);
    for (let i = 0; i < this.n; i++) this.busy[i + 1] = this.busy[i] + (end[i] - start[i]);
    this.largest = pyramid(this.n, (a, b) => size[a] >= size[b]);
    this.smallest = pyramid(this.n, (a, b) => size[a] <= size[b]);
  }

  /// From the first thing that ends after `from` to the first that begins at `to` or later.
  range(from, to) {
    return [lowerBound(this.reach, from), lowerBound(this.start, to)];
  }

  /// Place of the largest (or smallest) of `low..high`, which is not empty.
  extreme(levels, low, high) {
    let best = low;
    const better = levels.better;
    const take = (i) => { if (better(i, best)) best = i; };
    let level = 0;
    let a = low;
    let b = high;
    while (a < b) {
      const at = (i) => (level === 0 ? i : levels[level - 1][i]);
      while (a < b && a % FAN !== 0) take(at(a++));
      while (a < b && b % FAN !== 0) take(at(--b));
      if (level >= levels.length) {
        while (a < b) take(at(a++));
        break;
      }
      a /= FAN;
      b /= FAN;
      level++;
    }
    return best;
  }

  /// The thing at a time, the one that began last where several are; -1 for none.
  at(from, to) {
    const [low, high] = this.range(from, to);
    for (let i = high - 1; i >= low; i--) if (this.end[i] >= from) return i;
    return -1;
  }
}

function pyramid(n, better) {
  const levels = [];
  levels.better = better;
  let below = null;
  let count = n;
  while (count >= FAN) {
    const length = Math.ceil(count / FAN);
    const level = new Uint32Array(length);
    for (let k = 0; k < length; k++) {
      let best = below ? below[k * FAN] : k * FAN;
      const end = Math.min(count, (k + 1) * FAN);
      for (let i = k * FAN + 1; i < end; i++) {
        const candidate = below ? below[i] : i;
        if (better(candidate, best)) best = candidate;
      }
      level[k] = best;
    }
    levels.push(level);
    below = level;
    count = length;
  }
  return levels;
}
