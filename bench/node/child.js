// One of the compared systems of Node, as a producer or a worker in a process of its own. It obeys the commands of package peer: one JSON
// object a line of standard input, answered by events on standard output.
//
// Arguments: system, role, host, port, callers.
"use strict";
const readline = require("readline");
const systems = { bullmq: require("./bullmq"), rsmq: require("./rsmq"), ioredis: require("./ioredis") };
const [name, role, host, port] = process.argv.slice(2);
const connection = { host, port: Number(port) };

const timeDigits = 19;
const seqAt = timeDigits + 1;
const seqEnd = seqAt + 9;
const padding = "x".repeat(128 - seqEnd);

const say = (event) => process.stdout.write(JSON.stringify(event) + "\n");
const micros = () => Math.round((performance.timeOrigin + performance.now()) * 1000); // since 1970
const nanos = (us) => us * 1000; // inexact by less than a microsecond
const body = (us, seq) => String(us).padStart(timeDigits - 3, "0") + "000 " + String(seq).padStart(9, "0") + padding;

// publish has callers store messages as fast as they can.
async function publish(put, { messages, callers }) {
  const first = micros();
  let seq = 0;
  const caller = async () => {
    while (seq < messages) await put(body(micros(), seq++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
  say({ kind: "published", first: nanos(first), last: nanos(micros()) });
}

const tick = 1000; // microseconds between two looks at what is due

// pace stores messages at a rate; those that are due do not wait for the ones before them. The time in a body is when somebody looked
// and found it due, but at most a tick after it was: so a producer that stood still meanwhile does not hide it.
function pace(put, { messages, rate }) {
  const first = micros();
  let seq = 0;
  let stored = 0;
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const now = micros();
      for (; seq < messages && seq <= ((now - first) * rate) / 1e6; seq++) {
        const late = Math.round(first + (seq * 1e6) / rate) + tick;
        put(body(Math.min(now, late), seq)).then(() => {
          if (++stored === messages) resolve(say({ kind: "published", first: nanos(first), last: nanos(micros()) }));
        }, reject);
      }
      if (seq === messages) clearInterval(timer);
    }, tick / 1000);
  });
}

async function produce(next) {
  const put = await systems[name].producer(connection);
  say({ kind: "ready" });
  for (let cmd = await next(); cmd; cmd = await next()) {
    await { publish, pace }[cmd.op](put, cmd);
  }
}

// work waits for its first command before it reads anything.
async function work(next) {
  say({ kind: "ready" });
  const cmd = await next();
  if (!cmd) return;
  const keep = cmd.messages || 0;
  const latencies = new Array(keep).fill(-1);
  let handled = 0;
  let sum = 0;
  let first = 0;
  let last = 0;
  const handle = (text) => {
    const now = micros();
    if (text.length !== 128) throw new Error(`a body of ${text.length} bytes came, not of 128`);
    const seq = Number(text.slice(seqAt, seqEnd));
    if (handled++ === 0) first = now;
    sum += seq;
    last = now;
    if (seq < keep) latencies[seq] = now - Number(text.slice(0, timeDigits - 3));
  };
  await systems[name].worker(connection, handle);
  say({ kind: "ready" });
  let said = 0;
  setInterval(() => {
    if (handled !== said) say({ kind: "progress", handled: (said = handled) });
  }, 10);
  while (await next()) {
    say({ kind: "worked", handled, sum, first: nanos(first), last: nanos(last), latencies });
  }
}

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => {
  const { value, done } = await lines.next();
  return done ? null : JSON.parse(value);
};
const fail = (err) => {
  say({ kind: "failed", error: String(err) });
  process.exit(1);
};
process.on("unhandledRejection", fail);
({ producer: produce, worker: work })[role](next).then(() => process.exit(0), fail);
