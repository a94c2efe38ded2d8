// BullMQ: jobs are removed when they are done.
"use strict";
const { Queue, Worker } = require("bullmq");

exports.producer = async (connection) => {
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true, removeOnFail: true } });
  await queue.waitUntilReady();
  return (body) => queue.add("bench", { body });
};

exports.worker = async (connection, handle) => {
  const worker = new Worker("bench", async (job) => handle(job.data.body), {
    connection: { ...connection, maxRetriesPerRequest: null },
    concurrency: 100,
  });
  await worker.waitUntilReady();
};
