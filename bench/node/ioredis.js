// A minimal consumer of a stream: XADD, XREADGROUP COUNT 100, XACK per message. It stands in for a Node library built that way, and does
// less than one: no envelope, no retries, no recovery of what a crashed consumer held.
"use strict";
const { Redis } = require("ioredis");

const stream = "{bench}";
const group = "g";

exports.producer = async (connection) => {
  const redis = new Redis({ ...connection, enableAutoPipelining: true }); // as ioredis advises for many commands at once
  await redis.ping();
  return (body) => redis.xadd(stream, "*", "body", body);
};

exports.worker = async (connection, handle) => {
  const reader = new Redis(connection); // it blocks, so acknowledgements have a connection of their own
  const redis = new Redis(connection);
  await redis.xgroup("CREATE", stream, group, "0", "MKSTREAM").catch((err) => {
    if (!String(err).includes("BUSYGROUP")) throw err;
  });
  const loop = async () => {
    for (;;) {
      const reply = await reader.xreadgroup("GROUP", group, String(process.pid), "COUNT", 100, "BLOCK", 1000, "STREAMS", stream, ">");
      if (!reply) continue;
      await Promise.all(
        reply[0][1].map(([id, [, body]]) => {
          handle(body);
          return redis.xack(stream, group, id);
        }),
      );
    }
  };
  loop();
};
