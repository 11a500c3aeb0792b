// An agent sleeps, and its process is killed. When the sleep is over, two processes start: `node packages/time/measure/millrace.mjs`.
import { createAgent } from 'millrace';
import { journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { finish, text, toolCall } from 'millrace/testing';
import { openFiles } from '@millrace/store';
import { sleepLayer, wake$ } from '@millrace/time';
import { of } from 'rxjs';
import { measure, say } from './processes.mjs';

const model = {
  name: 'scripted',
  stream$: ({ messages }) => {
    const isBack = messages.at(-1).role === 'tool';
    say(isBack ? 'again' : 'asked');
    return of(isBack ? text('Back.') : toolCall('sleep', { seconds: 8 }), finish());
  },
};

measure(import.meta.filename, async (directory, isFirst) => {
  const store = openFiles(directory);
  const use = [sleepLayer(store.calls, { holdMs: 0 })];
  const agent = createAgent({ model, use });
  const users = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
  if (isFirst) await (await users.open('ada')).call('Look again in 8 seconds.');
  else wake$(store.calls, users).subscribe();
});
