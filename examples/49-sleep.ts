// An agent that is asked to come back does, although the process that was asked has ended.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, type Model } from 'millrace';
import { journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { finish, text, toolCall } from 'millrace/testing';
import { openFiles } from '@millrace/store';
import { sleepLayer, wake$ } from '@millrace/time';
import { filter, firstValueFrom, lastValueFrom, of } from 'rxjs';

const model: Model = {
  name: 'demo',
  stream$: ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? of(text('I am back. The parcel has arrived.'), finish())
      : of(toolCall('sleep', { seconds: 1 }), finish()), // or { days: 3 }
};

/** What each process does at its start. */
const open = (directory: string) => {
  const store = openFiles(directory);
  const use = [sleepLayer(store.calls, { holdMs: 0 })];
  const agent = createAgent({ name: 'helper', model, use });
  return { store, users: keepSessions(agent, store.sessions, { journal: journal(store.calls) }) };
};

const directory = mkdtempSync(join(tmpdir(), 'millrace-'));
const first = open(directory);
const ada = await first.users.open('ada');
console.log((await ada.call('Is my parcel there? If not, look again later.')).reason);
await lastValueFrom(first.store.close$(), { defaultValue: undefined });

const second = open(directory);
const woken$ = wake$(second.store.calls, second.users).pipe(filter(({ type }) => type === 'woken'));
const notice = await firstValueFrom(woken$);
if (notice.type === 'woken') console.log(notice.sleep.sessionId, '→', notice.value.text);
await lastValueFrom(second.store.close$(), { defaultValue: undefined });
rmSync(directory, { recursive: true });
