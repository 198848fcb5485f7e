// Graphile Worker with the settings of its own performance test: a local queue, and completions in batches.
//   node graphile.mjs drain N            no-op jobs a second, from the worker's start until the store holds no job
//   node graphile.mjs latency SAMPLES    milliseconds from before a job is put in to its start, one by one
// PEER_POSTGRES says where; the answer is one line of JSON.
import { setTimeout as sleep } from "node:timers/promises";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const [what, number] = process.argv.slice(2);
const connectionString = process.env.PEER_POSTGRES;
const logger = new Logger(() => () => {});
const BULK = 1000;
const payload = (n) => ({ n, note: "x".repeat(80) });

const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
const watcher = new pg.Client(connectionString);
await watcher.connect();

function work(concurrentJobs, noop) {
  const worker = {
    connectionString,
    concurrentJobs,
    maxPoolSize: concurrentJobs + 1,
    localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  return run({ preset: { worker }, logger, noHandleSignals: true, taskList: { noop } });
}

async function isDone() {
  const { rows } = await watcher.query("select exists (select from graphile_worker._private_jobs) as left");
  return !rows[0].left;
}

async function drain(n) {
  for (let from = 0; from < n; from += BULK) {
    const jobs = Array.from({ length: Math.min(BULK, n - from) }, (_, i) => payload(from + i));
    await utils.addJobs(jobs.map((payload) => ({ identifier: "noop", payload })));
  }
  await watcher.query("vacuum (analyze)");
  await watcher.query("checkpoint");
  let handled = 0;
  const began = performance.now();
  const runner = await work(24, async () => void handled++);
  while (handled < n || !(await isDone())) await sleep(handled < n ? 5 : 1);
  const ms = performance.now() - began;
  await runner.stop();
  return { ms, handled };
}

async function latency(samples) {
  let started = () => {};
  const runner = await work(24, async () => started(performance.now()));
  await sleep(500);
  const waits = [];
  for (let n = 0; n < samples; n++) {
    await sleep(20 + Math.random() * 100);
    const start = new Promise((resolve) => (started = resolve));
    const asked = performance.now();
    await utils.addJob("noop", payload(n));
    waits.push((await start) - asked);
  }
  await runner.stop();
  return { waits };
}

console.log(JSON.stringify(await (what === "drain" ? drain : latency)(Number(number))));
await utils.release();
await watcher.end();
process.exit(0);
