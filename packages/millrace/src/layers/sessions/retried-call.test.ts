import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, NEVER, of, retry, throwError, timeout } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  MillraceError,
  type MemoryFactory,
  type Message,
  textOf,
  tool,
} from '../../index.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { inProcessSessions, keepSessions, sessions } from './index.js';

const down = throwError(() => new MillraceError('server', 'Down.', { retryable: true }));
const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });

const line = (): MemoryFactory => {
  const kept: Message[] = [];
  return () => ({
    load$: () => of([...kept]),
    append$: (messages) => {
      kept.push(...messages.filter(({ id }) => !kept.some((known) => known.id === id)));
      return of(undefined);
    },
  });
};

const agentOf = (...answers: readonly ScriptedAnswer[]) => {
  const model = scriptedModel(...answers);
  return { model, agent: createAgent({ model, tools: [look] }) };
};

const textsOf = (messages: readonly Parameters<typeof textOf>[0][] | undefined) =>
  (messages ?? []).map(textOf);

/** Fails before its first answer, then after a tool call, and then answers. */
const answers = [down, [toolCall('look')], down, [text('Done.')], [text('Bye.')]] as const;

describe('I22: a cold call of a session that is subscribed again before it has replied', () => {
  it.each<[string, MemoryFactory | undefined]>([
    ['by default', undefined],
    ['in process', inProcessMemory()],
    ['in a line', line()],
  ])('asks with the same message, %s', async (_name, memory) => {
    const { model, agent } = agentOf([text('Hi.')], ...answers);
    const session = sessions(agent, memory && { memory }).open('s');
    await session.call('Hello.');
    const reply = await lastValueFrom(session.call$('Pay 5.').pipe(retry(3)));
    expect(reply.text).toBe('Done.');
    expect(textsOf(model.requests[4]?.messages)).toEqual(['Hello.', 'Hi.', 'Pay 5.']);
    await session.call('Bye.');
    const read = model.requests[5]?.messages ?? [];
    expect(read.filter(({ role }) => role === 'user').map(textOf)).toEqual([
      'Hello.',
      'Pay 5.',
      'Bye.',
    ]);
    expect(read.at(-2)).toMatchObject({ role: 'assistant', content: [{ text: 'Done.' }] });
  });

  it.each<[string, MemoryFactory | undefined]>([
    ['by default', undefined],
    ['in a line', line()],
  ])('asks with what others have said since the question once, %s', async (_name, memory) => {
    const { model, agent } = agentOf([text('Hi.')], down, down, [text('Done.')], [text('Bye.')]);
    const session = sessions(agent, memory && { memory }).open('s');
    await session.call('Hello.');
    const other = { role: 'assistant', name: 'other', content: 'I would pay 6.' } as const;
    await lastValueFrom(session.call$(['Pay 5.', other]).pipe(retry(3)));
    const asked = ['Hello.', 'Hi.', 'Pay 5.', 'I would pay 6.'];
    expect(model.requests.slice(1).map(({ messages }) => textsOf(messages))).toEqual(
      Array.from({ length: 3 }, () => asked),
    );
    await session.call('Bye.');
    expect(textsOf(model.requests[4]?.messages)).toEqual([...asked, 'Done.', 'Bye.']);
    const { branches = [] } = await session.saveState();
    expect(branches).toEqual([]);
  });

  it('keeps the tool calls of the failed attempt as a branch after that message', async () => {
    const { agent } = agentOf(...answers);
    const session = sessions(agent).open('s');
    await lastValueFrom(session.call$('Pay 5.').pipe(retry(3)));
    const { messages, branches = [] } = await session.saveState();
    expect(textsOf(messages)).toEqual(['Pay 5.', 'Done.']);
    expect(branches.map(({ message }) => message.role)).toEqual(['assistant', 'tool']);
    expect(branches[0]?.after).toBe(messages[0]?.id);
  });

  it('is a new one after a reply', async () => {
    const { agent } = agentOf([text('One.')], down, [text('Two.')]);
    const session = sessions(agent).open('s');
    const call$ = session.call$('Again.');
    await lastValueFrom(call$);
    await expect(lastValueFrom(call$)).rejects.toThrow('Down.');
    await lastValueFrom(call$);
    const { messages } = await session.saveState();
    expect(textsOf(messages)).toEqual(['Again.', 'One.', 'Again.', 'Two.']);
  });

  it('as events, discarded, after a timeout, and with its place', async () => {
    const { agent, model } = agentOf([text('Hi.')], down, [text('A.')], NEVER, [text('B.')], down, [
      text('C.'),
    ]);
    const session = sessions(agent).open('s');
    await session.call('Hello.', { callId: 'first' });
    const events$ = session.stream$('a', { onFailure: 'discard' });
    await lastValueFrom(events$.pipe(retry(3)));
    await lastValueFrom(session.call$('b').pipe(timeout(20), retry(3)));
    await lastValueFrom(session.call$('c', { after: 'first' }).pipe(retry(3)));
    expect(textsOf(model.requests[6]?.messages)).toEqual(['Hello.', 'Hi.', 'c']);
    const { messages, branches = [] } = await session.saveState();
    expect(textsOf([...messages, ...branches.map(({ message }) => message)])).toEqual([
      ...['Hello.', 'Hi.', 'a', 'A.', 'b', 'B.'],
      ...['c', 'C.'],
    ]);
  });

  it('is saved once in a kept session', async () => {
    const store = inProcessSessions();
    const { agent } = agentOf(...answers);
    const session = await keepSessions(agent, store).open('s');
    await lastValueFrom(session.call$('Pay 5.').pipe(retry(3)));
    expect(textsOf((await session.saveState()).messages)).toEqual(['Pay 5.', 'Done.']);
    const again = await keepSessions(agent, store).open('s');
    expect(textsOf((await again.saveState()).messages)).toEqual(['Pay 5.', 'Done.']);
  });

  it('S6: resumes with the message of the first attempt, from the state after that', async () => {
    const log = journal(createCallStore(inProcessCalls()));
    const { agent } = agentOf(...answers.slice(1));
    const session = await keepSessions(agent, inProcessSessions(), { journal: log }).open('s');
    const call$ = session.call$('Pay 5.');
    await expect(lastValueFrom(call$)).rejects.toThrow('Down.');
    const state = await session.saveState();
    await lastValueFrom(call$);
    // The process ends before it has saved the second attempt.
    const store = inProcessSessions();
    await lastValueFrom(store.save$('s', state, undefined));
    const elsewhere = await keepSessions(agentOf().agent, store, { journal: log }).open('s');
    expect((await elsewhere.resume())?.text).toBe('Done.');
    const { messages, branches = [] } = await elsewhere.saveState();
    expect(textsOf(messages)).toEqual(['Pay 5.', 'Done.']);
    expect(messages[0]?.id).toBe(state.messages[0]?.id);
    expect(branches).toHaveLength(2);
  });

  it('with an id of its own is that call, which has been made', async () => {
    const { agent } = agentOf(...answers);
    const session = sessions(agent).open('s');
    const call$ = session.call$('Pay 5.', { callId: 'c' });
    await expect(lastValueFrom(call$)).rejects.toThrow('Down.');
    await expect(lastValueFrom(call$)).rejects.toMatchObject({ code: 'conflict' });
  });
});
