// A chat in a SQLite database. It outlasts the program: the next one resumes the call that was stopped, lists the calls and replays them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, text, textOf } from 'millrace';
import { calls$, replay$, journal } from 'millrace/journal';
import { keepSessions, sessions } from 'millrace/sessions';
import { scriptedModel, text as says } from 'millrace/testing';
import { openSqlite } from '@millrace/store/sqlite';
import { filter, lastValueFrom, toArray } from 'rxjs';

const directory = mkdtempSync(join(tmpdir(), 'millrace-'));
const open = () => {
  const store = openSqlite(join(directory, 'chat.db'));
  const model = scriptedModel(({ messages }) => {
    const asked = messages.filter(({ role }) => role === 'user').map(textOf);
    return [says(`I have heard: ${asked.join(' ')}`)];
  });
  const durable = journal(store.calls);
  const agent = createAgent({ model, use: [durable] });
  return { agent, store, kept: keepSessions(agent, store.sessions, { journal: durable }) };
};

// The first program: it ends before the session is saved.
const first = open();
await sessions(first.agent).open('ada').call('My name is Ada.', { callId: 'hello' });
await lastValueFrom(first.store.close$(), { defaultValue: undefined });

const { store, kept } = open();
const session = await kept.open('ada');
const reply = await session.resume();
console.log(reply && textOf(reply));
console.log(textOf(await session.call('And who am I?')));
const readable$ = calls$(store.calls).pipe(filter((it) => it.status !== 'unreadable'));
await readable$.forEach(({ status, question }) => console.log(`${status}: ${question}`));
const again$ = replay$(store.calls, 'hello', { speed: Infinity }).pipe(text(), toArray());
console.log('again:', (await lastValueFrom(again$)).join(''));
await lastValueFrom(store.close$(), { defaultValue: undefined });
rmSync(directory, { recursive: true });
