import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type Message, textOf, tool } from 'millrace';
import { lentContext } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { z } from 'zod';
import {
  ask,
  chat,
  claude,
  closeServers,
  cutOff,
  oslo,
  responses,
  serving,
} from './ask.test-support.js';
import { type AiSdkModelOptions, aiSdkModel } from './index.js';
import { finish, playParts, text } from './parts.test-support.js';
import {
  chatCall,
  chatCalls,
  chatText,
  claudeBlocks,
  completion,
  textBlock,
} from './wire-events.test-support.js';

afterEach(closeServers);

const typed = (type: string, ...frames: readonly string[]) => ({
  headers: { 'content-type': type },
  frames,
});
const event = (data: { readonly type: string; readonly error?: object }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

describe('an answer that is not a stream', () => {
  it.each([
    ['application/json; charset=utf-8', '{"choices":[]}'],
    ['text/html', '<html>Sign in</html>'],
  ])('names its content type, and is not asked for again: %s', async (type, body) => {
    const { error } = await ask(chat, [typed(type, body)]);
    expect(error).toMatchObject({ code: 'invalidResponse', retryable: false });
    expect(String(error)).toContain(type);
  });

  it.each(['application/json', 'text/html'])('a stream may have the type %s', async (type) => {
    const { reply } = await ask(chat, [typed(type, ...chatText('Yes.').frames.map(String))]);
    expect(reply && textOf(reply)).toBe('Yes.');
    const cut = completion({ delta: { content: 'Half' } }).frames.map(String);
    expect((await ask(chat, [typed(type, ...cut)])).error).toMatchObject(cutOff);
  });

  it('without a body, it is asked for again', async () => {
    const { error } = await ask(chat, [{ status: 204, frames: [] }]);
    expect(error).toMatchObject(cutOff);
  });

  it('whose package read no tool call is incomplete, also beside text', async () => {
    expect((await ask(chat, [completion(chatCalls)])).error).toMatchObject(cutOff);
    const { error } = await ask(chat, [completion({ delta: { content: 'Yes.' } }, chatCalls)]);
    expect(error).toMatchObject(cutOff);
  });
});

describe('an error that is the first event', () => {
  it('has the kind of its type: its package makes up a status', async () => {
    const error = { type: 'rate_limit_error', message: 'Slow down.' };
    const failed = await ask(claude, [typed('text/event-stream', event({ type: 'error', error }))]);
    expect(failed.error).toMatchObject({ code: 'rateLimited', retryable: true });
  });

  it('that its package cannot read is no error of the server', async () => {
    const failed = await ask(claude, [typed('text/event-stream', event({ type: 'hologram' }))]);
    expect(failed.error).toMatchObject(cutOff);
    expect(String(failed.error)).toMatch(/Type validation failed/);
  });
});

describe('names that every object has', () => {
  it.each(['constructor', 'toString', '__proto__'])('%s is a tool like another', async (name) => {
    const seen: unknown[] = [];
    const named = tool({
      ...{ name, description: 'n', input: z.object({ city: z.string() }) },
      run: (it) => (seen.push(it), 'ok'),
    });
    const server = await serving(chatText('Done.'));
    await createAgent({ model: aiSdkModel(responses(server.url)), tools: [named] })
      .call('Hi!')
      .catch(() => undefined);
    const { tools } = JSON.parse(server.bodies[0] ?? '') as { tools: { name: string }[] };
    const [wire] = tools;
    expect(wire?.name).not.toBe(name);
    const answers = [completion(chatCall(0, wire?.name ?? '', oslo), chatCalls), chatText('Done.')];
    await ask(chat, answers, {}, { tools: [named] });
    expect(seen).toEqual([{ city: 'Oslo' }]);
  });

  it('a call of one that the model made up goes back with a name', async () => {
    const use = { type: 'tool_use', id: 'toolu_1', name: '__proto__', input: {} };
    const { server } = await ask(claude, [
      claudeBlocks([[use]], { stop: 'tool_use' }),
      claudeBlocks([textBlock('Done.')]),
    ]);
    expect(server.bodies[1]).toContain('"name":"tool___proto__"');
  });
});

describe('the container that waits for results', () => {
  const asking = (name: string): Message => ({
    ...{ id: 'a', role: 'assistant', vendor: { name, container: { id: 'c_1' } } },
    content: [{ type: 'tool_call', id: 't', name: 'weather', input: {} }],
  });
  const result: Message = {
    ...{ id: 'r', role: 'tool' },
    content: [{ type: 'tool_result', toolCallId: 't', content: [], isError: false }],
  };
  const next: Message = { id: 'u', role: 'user', content: [{ type: 'text', text: 'Hi!' }] };
  const optionsFor = async (
    messages: readonly Message[],
    settings?: AiSdkModelOptions['settings'],
  ) => {
    const model = playParts([[...text('1', 'Yes.'), finish()]]);
    await lastValueFrom(
      aiSdkModel(model, { settings }).stream$({ messages }, lentContext()).pipe(toArray()),
    );
    return (model.asked[0] as unknown as Record<string, unknown>)['providerOptions'];
  };

  it('goes to its provider while it waits; options of the caller take precedence', async () => {
    const container = { id: 'c_1' };
    const own = { providerOptions: { anthropic: { container: { id: 'own' }, effort: 'low' } } };
    expect(await optionsFor([asking('acme.chat'), result])).toEqual({ anthropic: { container } });
    expect(await optionsFor([asking('acme.chat'), result], own)).toEqual(own.providerOptions);
    expect(await optionsFor([asking('other.chat'), result])).toBeUndefined();
    expect(await optionsFor([asking('acme.chat'), result, next])).toBeUndefined();
  });
});
