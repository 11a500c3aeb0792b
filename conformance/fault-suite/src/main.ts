import { faults, type FaultServer, startFaultServer, wires } from '@millrace/fault-server';
import { measureStream } from './long-stream.js';
import { playAll } from './play-all.js';
import { tableOf } from './table.js';

const help = `npm run faults -- [--growth] [part of a name …]

Plays the faults whose names hold one of the parts, or all of them, and prints what came out as a table. It exits with 1
when something is not as it must be. With --growth it measures answers of 50,000 and of 100,000 deltas instead.`;

const parts = process.argv.slice(2);
if (parts.includes('--help') || parts.includes('-h')) console.log(help);
else if (parts.includes('--growth')) await withServer(measure);
else process.exitCode = await run();

async function run(): Promise<number> {
  const chosen = faults.filter(
    ({ id }) => parts.length === 0 || parts.some((part) => id.includes(part)),
  );
  if (chosen.length === 0) {
    console.error(`No fault has a name with ${parts.join(' or ')}. There are:\n${namesOf()}`);
    return 2;
  }
  const rejections: unknown[] = [];
  process.on('unhandledRejection', (reason) => rejections.push(reason));
  const played = await withServer((server) =>
    playAll(server, chosen, (done, all) => {
      if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${all} `);
    }),
  );
  if (process.stderr.isTTY) process.stderr.write('\r');
  console.log(tableOf(played));
  rejections.forEach((reason) => console.log('An unhandled rejection:', reason));
  return rejections.length > 0 || played.some(({ wrongs }) => wrongs.length > 0) ? 1 : 0;
}

/** The server must go whatever happens: it would keep this process alive. */
async function withServer<T>(work: (server: FaultServer) => Promise<T>): Promise<T> {
  const server = await startFaultServer();
  try {
    return await work(server);
  } finally {
    await server.close();
  }
}

async function measure(server: FaultServer): Promise<void> {
  for (const wire of wires) {
    await measureStream(server, wire, 10_000);
    const [half, whole] = [
      await measureStream(server, wire, 50_000),
      await measureStream(server, wire, 100_000),
    ];
    console.log(
      `${wire.padEnd(10)} 50,000: ${half.ms.toFixed(0)} ms, 100,000: ${whole.ms.toFixed(0)} ms, ` +
        `ratio ${(whole.ms / half.ms).toFixed(2)}, memory held: ${whole.grownMb.toFixed(1)} MB`,
    );
  }
}

function namesOf(): string {
  return faults.map(({ id, about }) => `  ${id.padEnd(40)}${about}`).join('\n');
}
