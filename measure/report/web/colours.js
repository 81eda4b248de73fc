// Colours of both themes, read from the style sheet so that there is one place for them.

const HUES = 10;

export function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const cold = triple(of('cold'));
  const warm = triple(of('warm'));
  const hot = triple(of('hot'));
  const ramp = Array.from({ length: 64 }, (_, i) => {
    const part = i / 63;
    return part < 0.5 ? mix(cold, warm, part * 2) : mix(warm, hot, part * 2 - 1);
  });
  return {
    text: of('text'), dim: of('dim'), grid: of('grid'), back: of('back'), panel: of('panel'),
    bad: of('bad'), pick: of('pick'), run: of('run'), veil: of('veil'), first: of('first'),
    module: Array.from({ length: HUES }, (_, i) => of(`m${i}`)),
    ink: of('ink'),
    /// 0 is as fast as most, 1 the slowest of all.
    latency: (part) => ramp[Math.max(0, Math.min(63, Math.round(part * 63)))],
  };
}

/// The colour of a module never depends on which others are on the page.
export function hue(module) {
  return module === null || module === undefined ? HUES - 1 : module % (HUES - 1);
}

function triple(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mix(a, b, part) {
  return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * part)).join(' ')})`;
}
