import { heldBytes, settled } from '../jobs/held-memory.js';
import { isFlag, isNumber, isShape, isText } from '../guard.js';
import {
  handFloor,
  type ServerName,
  serverNames,
  type ServerOptions,
  startServer,
} from './server.js';

/** What a server process has used so far. */
export interface Usage {
  /** CPU time of all threads, in milliseconds. */
  readonly cpuMs: number;
  readonly rssBytes: number;
  /** On the heap and in buffers, after a garbage collection; NaN if it was not asked for. */
  readonly heldBytes: number;
  readonly externalBytes: number;
}

// With the process that started it, it ends too.
process.on('disconnect', () => process.exit(0));

const isServerName = (value: unknown): value is ServerName =>
  [handFloor, ...serverNames].some((name) => name === value);

const isOptions = isShape<ServerOptions>({
  name: isServerName,
  folder: isText,
  heartbeatMs: isNumber,
  maxCalls: isNumber,
});

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** What asking for the memory has taken: it is not the server's. */
let collectingMs = 0;

const usage = async (isCollecting: boolean): Promise<Usage> => {
  const before = cpuMs();
  if (isCollecting) await settled();
  const held = isCollecting ? heldBytes() : NaN;
  collectingMs += cpuMs() - before;
  const { rss, external } = process.memoryUsage();
  return {
    cpuMs: cpuMs() - collectingMs,
    rssBytes: rss,
    heldBytes: held,
    externalBytes: external,
  };
};

const options: unknown = JSON.parse(process.argv[2] ?? '');
if (!isOptions(options)) throw new Error('These are no options of a server.');
const port = await startServer(options);
// Each message asks what it has used; `true`: after a garbage collection.
process.on('message', (asked) => {
  const isCollecting = isFlag(asked) && asked;
  void usage(isCollecting).then((used) => process.send?.(used));
});
process.send?.({ port });
