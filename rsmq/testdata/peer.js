// A process of the Node package rsmq that does what its standard input says: one JSON object per line,
// {"n":1,"op":"sendMessage","args":{...}}; it answers {"n":1,"result":...} or {"n":1,"error":{"name":...,"message":...}}.
//
// Arguments: the package's name, host, port, namespace, and "realtime" or nothing.
"use strict";
const readline = require("readline");
const [name, host, port, ns, realtime] = process.argv.slice(2);
const RSMQ = require(name);
const rsmq = new RSMQ({ host, port: Number(port), ns, realtime: realtime === "realtime" });

const say = (object) => process.stdout.write(JSON.stringify(object) + "\n");

// Bodies that JSON cannot hold: {"$repeat":[text,n]}.
const value = (v) => (v && v.$repeat ? v.$repeat[0].repeat(v.$repeat[1]) : v);

const plainError = (err) => ({ name: String(err.name), message: String(err.message) });

// consume receives and deletes until the queue stays empty, one line per message; kept ones are left hidden.
function consume(args) {
  let empty = 0;
  const next = () =>
    rsmq.receiveMessage({ qname: args.qname, vt: args.vt }, (err, m) => {
      if (err) return say({ error: plainError(err) });
      if (!m.id) {
        empty += 1;
        return empty < args.patience ? setTimeout(next, 20) : say({ done: true });
      }
      empty = 0;
      say({ id: m.id, rc: m.rc });
      if (args.keep) return next();
      rsmq.deleteMessage({ qname: args.qname, id: m.id }, next);
    });
  next();
}

// work is an rsmq-worker on this connection.
function work(args) {
  const Worker = require("rsmq-worker");
  const worker = new Worker(args.qname, { rsmq, interval: 0.01, autostart: true, invisibletime: args.vt });
  worker.on("message", (message, next, id) => {
    say({ id, message });
    next(message !== "keep");
  });
  worker.on("error", (err) => say({ error: plainError(err) }));
  worker.start();
}

function subscribe(args) {
  const client = require("redis").createClient({ host, port: Number(port) });
  client.on("message", (channel, message) => say({ channel, message }));
  client.on("subscribe", () => say({ subscribed: true }));
  client.subscribe(args.channel);
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { n, op, args } = JSON.parse(line);
  for (const key of Object.keys(args)) args[key] = value(args[key]);
  if (op === "consume") return consume(args);
  if (op === "work") return work(args);
  if (op === "subscribe") return subscribe(args);
  const answer = (err, result) => say(err ? { n, error: plainError(err) } : { n, result });
  if (op === "listQueues") return rsmq.listQueues(answer);
  rsmq[op](args, answer);
}).on("close", () => process.exit(0));

rsmq.redis.on("error", (err) => process.stderr.write(String(err) + "\n"));
say({ ready: true });
