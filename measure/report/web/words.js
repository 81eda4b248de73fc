// Numbers with their units, as the rest of the report writes them.

export function timeText(ns) {
  const size = Math.abs(ns);
  const [value, unit] = size < 999.5 ? [ns, 'ns']
    : size < 999.5e3 ? [ns / 1e3, 'µs']
      : size < 999.5e6 ? [ns / 1e6, 'ms'] : [ns / 1e9, 's'];
  const digits = Math.abs(value) < 9.995 && unit !== 'ns' ? 2 : Math.abs(value) < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${unit}`;
}

/// A moment since the start: to the nanosecond, in groups of three digits.
export function momentText(ns) {
  const whole = Math.floor(Math.abs(ns) / 1e9);
  const rest = Math.round(Math.abs(ns) % 1e9).toString().padStart(9, '0');
  return `${ns < 0 ? '−' : ''}${whole}.${rest.replace(/(\d{3})(?=\d)/g, '$1 ')} s`;
}

export function grouped(n) {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/// 1, 2 or 5 times a power of ten, not below `rough`.
export function roundStep(rough) {
  const unit = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * unit).find((step) => step >= rough * 0.999);
}

/// Labels of a ruler: offsets, in the unit of the step.
export function offsetText(ns, step) {
  const [scale, unit] = step < 100 ? [1, 'ns'] : step < 100e3 ? [1e3, 'µs']
    : step < 100e6 ? [1e6, 'ms'] : [1e9, 's'];
  const digits = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  return `${(ns / scale).toFixed(Math.min(digits, 3))} ${unit}`;
}

export function element(kind, text = '', attributes = {}) {
  const made = document.createElement(kind);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
