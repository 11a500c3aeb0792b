import { createServer } from 'node:http';
import { type Ask, isAsk, type Tell } from './ipc.js';
import type { SeenRequest } from './scenario.js';
import { createRun, type Run } from './server/run.js';
import { serve } from './server/serve.js';

const runs = new Map<string, Run>();

const tell = (message: Tell): void => {
  process.send?.(message);
};

const listen = (isOther: boolean): Promise<string> =>
  new Promise((resolve) => {
    const house = { find: (id: string) => runs.get(id), isOther, otherOrigin: () => otherOrigin };
    const server = createServer({ keepAliveTimeout: 0 }, serve(house));
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`);
    });
  });

/** Does what is asked, and gives the requests that it is about. */
const reply = async (ask: Ask): Promise<readonly SeenRequest[]> => {
  if (ask.type === 'play') runs.set(ask.id, createRun(ask.scenario));
  const run = runs.get(ask.id);
  if (run === undefined) return [];
  if (ask.type === 'arrived') await run.arrived(ask.index);
  if (ask.type === 'closed') await run.closed(ask.index);
  return run.seen();
};

process.on('disconnect', () => process.exit(0));
process.on('message', (message) => {
  if (!isAsk(message)) return;
  void reply(message).then((requests) => tell({ type: 'reply', ask: message.ask, requests }));
});

const otherOrigin = await listen(true);
tell({ type: 'listening', origin: await listen(false) });
