import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { firstValueFrom } from 'rxjs';
import type { Adapter, Setup } from '../adapter.js';
import { inspected } from './millrace-devtools.js';

/** Reads the feed in another process, as a page does, until this one ends. */
const reader = `
  const { origin, hash } = new URL(process.argv[1]);
  const headers = { authorization: 'Bearer ' + hash.replace('#token=', '') };
  process.stdin.on('end', () => process.exit()).resume();
  fetch(origin + '/api/feed', { headers }).then(async ({ body }) => {
    let isOpen = false;
    for await (const bytes of body) {
      if (!isOpen) process.stdout.write('open');
      isOpen = true;
    }
  });`;

/** The same with a page that is open. */
export const open = async (setup: Setup): Promise<Adapter> => {
  const { adapter, devtools } = inspected(setup);
  const address = await firstValueFrom(devtools.address$);
  const child = spawn(process.execPath, ['-e', reader, address], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.unref();
  return {
    ...adapter,
    close: () => {
      child.kill();
      devtools.close();
    },
  };
};
