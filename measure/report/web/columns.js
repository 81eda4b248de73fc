// Columns of integers, as measure/report/src/html/column.rs writes them: base64 of deflated
// differences. Numbers beyond 2^53 do not occur: ticks of a month, sequence numbers.

async function inflate(text) {
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function column(text) {
  const bytes = await inflate(text);
  let n = 0;
  for (let i = 0; i < bytes.length; i++) n += bytes[i] < 128;
  const numbers = new Float64Array(n);
  let at = 0;
  let previous = 0;
  for (let k = 0; k < n; k++) {
    let byte = bytes[at++];
    let folded = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      folded += (byte & 127) * scale;
    }
    previous += folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
    numbers[k] = previous;
  }
  return numbers;
}

/// All columns of a table that come as text; other fields stay as they are.
export async function columns(table) {
  const fields = Object.entries(table).map(async ([name, value]) => {
    return [name, typeof value === 'string' ? await column(value) : value];
  });
  return Object.fromEntries(await Promise.all(fields));
}
