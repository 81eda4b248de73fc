const deep = (n) => { if (n === 0) throw new Error("deep"); return deep(n - 1); };
let caught = 0;
for (let i = 0; i < 2000; i++) {
  try { deep(i % 50); } catch (e) { caught += e.message.length; }
}
const map = new Map();
for (let i = 0; i < 20000; i++) map.set("k" + (i % 999), [i, { i }]);
setTimeout(() => console.log(caught, JSON.stringify([...map]).length), 1);
