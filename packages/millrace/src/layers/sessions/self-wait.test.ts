import { describe, expect, it } from '@jest/globals';
import { catchError, concatMap, defer, from, map, type Observable, of } from 'rxjs';
import { createAgent, textOf, tool, type ToolContext } from '../../index.js';
import { finish, scriptedModel, text, toolCall } from '../../testing/index.js';
import { agentTool } from '../teams/index.js';
import { type Session, sessions } from './index.js';
import type { OnBusy } from './session-queue.js';

const codeOf = (error: unknown): string => String(Reflect.get(Object(error), 'code'));

/** A session whose tool does something when it is called, with a reply to any question. */
const sessionThat = (
  act: (context: ToolContext) => unknown,
  id = 's',
): { readonly session: Session; readonly agent: ReturnType<typeof createAgent> } => {
  const again = tool({
    name: 'again',
    description: 'Asks again.',
    run: (_, context) => act(context),
  });
  // Asked a little later, so that calls of several sessions run at the same time.
  const asks$ = from(Promise.resolve()).pipe(concatMap(() => [toolCall('again'), finish()]));
  const model = scriptedModel(asks$, ...Array.from({ length: 5 }, () => [text('Well.')]));
  const agent = createAgent({ model, tools: [again], name: id });
  return { agent, session: sessions(agent, { onBusy: 'queue' }).open(id) };
};

const asked$ = (session: Session, options: Parameters<Session['call$']>[1]): Observable<string> =>
  session.call$('?', options).pipe(
    map(textOf),
    catchError((error: unknown) => of(codeOf(error))),
  );

/** Ways in which a tool can call a session. */
const ways: Readonly<Record<string, (call$: () => Observable<string>) => unknown>> = {
  'with a returned Observable': (call$) => call$(),
  'with a deferred Observable': (call$) => defer(call$),
  'with a Promise': (call$) => new Promise((resolve) => void call$().subscribe(resolve)),
  'in an async function': async (call$) => {
    const answer = await new Promise((resolve) => void call$().subscribe(resolve));
    return `${String(answer)}`;
  },
  'in a generator': async function* (call$) {
    yield await new Promise((resolve) => void call$().subscribe(resolve));
  },
};

describe('S3: a tool that would wait for its own call', () => {
  const modes: readonly OnBusy[] = ['queue', 'steer', 'switch'];
  it.each(Object.keys(ways).flatMap((way) => modes.map((onBusy) => [way, onBusy] as const)))(
    'gets an error immediately, %s, with %s',
    async (way, onBusy) => {
      const { session } = sessionThat(() => ways[way]?.(() => asked$(session, { onBusy })));
      const reply = await session.call('?');
      expect(reply.toolCalls.map(({ output }) => output)).toEqual(['busy']);
      expect(reply.text).toBe('Well.');
    },
  );

  it('gets it after an await, too, if it passes its context', async () => {
    const { session } = sessionThat(async (parent) => {
      await Promise.resolve();
      return new Promise((resolve) => void asked$(session, { parent }).subscribe(resolve));
    });
    const reply = await session.call('?');
    expect(reply.toolCalls.map(({ output }) => output)).toEqual(['busy']);
  });

  it.each(['with its context', 'without it'])(
    'gets it through another session and through a sub-agent, %s',
    async (how) => {
      const options = (parent: ToolContext) => (how === 'without it' ? {} : { parent });
      const inner = sessionThat((parent) => asked$(outer.session, options(parent)), 'inner');
      const boss = createAgent({
        name: 'boss',
        model: scriptedModel([toolCall('inner', { user_prompt: '?' })], [text('Boss.')]),
        tools: [agentTool(inner.agent, { description: 'Asks.' })],
      });
      const outer: ReturnType<typeof sessionThat> = sessionThat((parent) =>
        how === 'without it'
          ? asked$(inner.session, {})
          : boss.call$('?', { parent }).pipe(map(textOf)),
      );
      const reply = await outer.session.call('?');
      expect(reply.toolCalls[0]?.isError).toBe(false);
      expect(reply.text).toBe('Well.');
    },
  );

  it('gets it if two sessions wait for each other', async () => {
    const outputs: unknown[] = [];
    const one: ReturnType<typeof sessionThat> = sessionThat(() => asked$(two.session, {}), 'one');
    const two: ReturnType<typeof sessionThat> = sessionThat(() => asked$(one.session, {}), 'two');
    const replies = await Promise.all([one.session.call('?'), two.session.call('?')]);
    replies.forEach(({ toolCalls }) => outputs.push(toolCalls[0]?.output));
    expect(outputs.filter((output) => output === 'busy')).toHaveLength(1);
  });

  it('gets the reason', async () => {
    const { session } = sessionThat(() => session.call('?'));
    const reply = await session.call('?');
    expect(reply.toolCalls[0]).toMatchObject({
      isError: true,
      output: expect.stringContaining('one of its tools made it'),
    });
  });

  it('cannot wait to cancel what waits for results, either', async () => {
    const { session } = sessionThat(() => session.cancelSuspended());
    const reply = await session.call('?');
    expect(reply.toolCalls[0]).toMatchObject({ isError: true });
  });
});

describe('S3: a call that does not wait for itself', () => {
  it('waits for its turn: after the tool, of another caller, and of another session', async () => {
    const later: Promise<unknown>[] = [];
    const { session } = sessionThat(() => {
      queueMicrotask(() => later.push(session.call('later')));
      return other.session.call$('?').pipe(map(textOf));
    });
    const other = sessionThat(() => 'fine', 'other');
    const [reply, second] = await Promise.all([session.call('?'), session.call('?')]);
    expect([reply.text, second.text]).toEqual(['Well.', 'Well.']);
    expect(reply.toolCalls[0]?.output).toBe('Well.');
    expect(await Promise.all(later)).toMatchObject([{ text: 'Well.' }]);
  });

  it('is one that starts when a tool has emitted, in the same moment', async () => {
    const started: Promise<unknown>[] = [];
    const { session } = sessionThat(() => from(['a', 'b']));
    session.events$.subscribe(({ type }) => {
      if (type === 'actingChunk' && started.length === 0) started.push(session.call('meanwhile'));
    });
    expect((await session.call('?')).text).toBe('Well.');
    expect(await Promise.all(started)).toMatchObject([{ text: 'Well.' }]);
  });
});
