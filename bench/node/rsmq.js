// rsmq: loops that receive a message, handle it and delete it.
"use strict";
const RSMQ = require("rsmq");

const qname = "bench";
const loops = 32;
const idle = 20; // milliseconds before an empty queue is looked at again

async function open({ host, port }) {
  const rsmq = new RSMQ({ host, port, realtime: false });
  await rsmq.createQueueAsync({ qname }).catch((err) => {
    if (err.name !== "queueExists") throw err;
  });
  return rsmq;
}

exports.producer = async (connection) => {
  const rsmq = await open(connection);
  return (message) => rsmq.sendMessageAsync({ qname, message });
};

exports.worker = async (connection, handle) => {
  const rsmq = await open(connection);
  const loop = async () => {
    for (;;) {
      const m = await rsmq.receiveMessageAsync({ qname });
      if (!m.id) {
        await new Promise((resolve) => setTimeout(resolve, idle));
        continue;
      }
      handle(m.message);
      await rsmq.deleteMessageAsync({ qname, id: m.id });
    }
  };
  for (let i = 0; i < loops; i += 1) loop();
};
