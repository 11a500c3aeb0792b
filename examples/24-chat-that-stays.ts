// A chat in an embedded database: it outlasts the program, which can list what was asked and show it again.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, text, textOf } from '@millrace/core';
import { calls$, replay$ } from '@millrace/core/journal';
import { scriptedModel, text as says } from '@millrace/core/testing';
import { openEmbedded } from '@millrace/store/embedded';
import { lastValueFrom, toArray } from 'rxjs';

const directory = mkdtempSync(join(tmpdir(), 'millrace-'));
const open = () => {
  const store = openEmbedded(directory);
  const model = scriptedModel((request) => [
    says(
      `I have heard: ${request.messages
        .filter(({ role }) => role === 'user')
        .map(textOf)
        .join(' ')}`,
    ),
  ]);
  return { store, agent: createAgent({ model, memory: store.memory, journal: store.calls }) };
};

// The first program.
const first = open();
const call = { callId: 'hello' };
console.log(textOf(await first.agent.session('ada').call('My name is Ada.', call)));
await lastValueFrom(first.store.close$(), { defaultValue: undefined });

const { store, agent } = open();
console.log(textOf(await agent.session('ada').call('And who am I?')));
for (const summary of await lastValueFrom(calls$(store.calls).pipe(toArray()))) {
  if (summary.status !== 'unreadable') console.log(`${summary.status}: ${summary.question}`);
}
const again$ = replay$(store.calls, 'hello', { speed: Infinity }).pipe(text(), toArray());
console.log('again:', (await lastValueFrom(again$)).join(''));
await lastValueFrom(store.close$(), { defaultValue: undefined });
rmSync(directory, { recursive: true });
