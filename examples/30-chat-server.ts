// A chat server over a directory: it ends in the middle of an answer, and the next one continues the call.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, type ModelChunk } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { serve, type Served } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { concat, firstValueFrom, lastValueFrom, NEVER, of, ReplaySubject } from 'rxjs';

const directory = mkdtempSync(join(tmpdir(), 'millrace-'));
const start = (answer: ScriptedAnswer): Promise<Served> => {
  const agent = createAgent({ name: 'helper', model: scriptedModel(answer) });
  const served$ = new ReplaySubject<Served>(1);
  serve(agent, { port: 0, store: openFiles(directory), closeMs: 0 }).subscribe(served$);
  return firstValueFrom(served$);
};
const close = ({ close$ }: Served) => lastValueFrom(close$, { defaultValue: undefined });
const textIn = (events: string) => [...events.matchAll(/(?<="delta":")[^"]*/g)].join('');

const first = await start(() => concat(of<ModelChunk>(text('Once upon')), NEVER));
const messages = [{ role: 'user', parts: [{ type: 'text', text: 'A story?' }] }];
const { body } = await fetch(`${first.url}/api/chat`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ id: 'chat-1', messages }),
});
const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
let seen = '';
while (textIn(seen) === '') seen += (await reader?.read())?.value ?? '';
console.log('the first server:', textIn(seen));
await close(first);

const second = await start([text('Once upon a time.')]);
const answer = await fetch(`${second.url}/api/chat/chat-1/stream`);
console.log('the second one:', textIn(await answer.text()));
await close(second);
rmSync(directory, { recursive: true });
