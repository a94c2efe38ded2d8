// Times the Node package rsmq. Each line of standard input is one run, {"op":"send","callers":64,"messages":20000}; the answer is one line,
// {"messages":20000,"seconds":1.5}, or {"error":"..."}. The queue is there already, and holds enough for a run that takes from it.
//
// Arguments: host, port, queue, and the size of a body in bytes.
"use strict";
const readline = require("readline");
const RSMQ = require("rsmq");
const [host, port, qname, size] = process.argv.slice(2);
const rsmq = new RSMQ({ host, port: Number(port) });
const message = "x".repeat(Number(size));

// What one caller does with one message.
const operations = {
  send: (done) => rsmq.sendMessage({ qname, message }, done),
  pop: (done) => rsmq.popMessage({ qname }, (err, m) => done(err || (m.id ? null : new Error("the queue is empty")))),
  receive: (done) =>
    rsmq.receiveMessage({ qname }, (err, m) => {
      if (err || !m.id) return done(err || new Error("the queue is empty"));
      rsmq.deleteMessage({ qname, id: m.id }, (err, n) => done(err || (n === 1 ? null : new Error("the message is gone"))));
    }),
};

// run has callers do their part of an operation's messages, and reports the time.
function run({ op, callers, messages }, report) {
  const began = process.hrtime.bigint();
  let left = messages;
  let busy = callers;
  let failure = null;
  const next = (err) => {
    failure = failure || err;
    if (failure || left === 0) {
      busy -= 1;
      if (busy > 0) return;
      const seconds = Number(process.hrtime.bigint() - began) / 1e9;
      return report(failure ? { error: String(failure) } : { messages, seconds });
    }
    left -= 1;
    operations[op](next);
  };
  for (let i = 0; i < callers; i += 1) next(null);
}

const say = (object) => process.stdout.write(JSON.stringify(object) + "\n");

readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => run(JSON.parse(line), say))
  .on("close", () => process.exit(0));
