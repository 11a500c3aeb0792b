import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk, textOf } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions, type SessionState, type SessionStore } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { DefaultChatTransport, type UIMessage } from 'ai';
import {
  concatMap,
  first,
  firstValueFrom,
  lastValueFrom,
  NEVER,
  ReplaySubject,
  startWith,
  Subject,
  tap,
} from 'rxjs';
import { answerIn, readStream } from '../read-as-client.test-support.js';
import { chatServer, type ChatServer } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

/** Servers of one store, and what it has of the conversation. */
const place = () => {
  const [driver, inner] = [inProcessCalls(), inProcessSessions()];
  const saved$ = new Subject<void>();
  const noted = tap<number>(() => saved$.next());
  const sessions: SessionStore = {
    ...inner,
    save$: (...given) => inner.save$(...given).pipe(noted),
    append$: (...given) => (inner.append$?.(...given) ?? NEVER).pipe(noted),
  };
  const start = (...answers: readonly ScriptedAnswer[]) => {
    const store = { calls: createCallStore(driver), sessions };
    const server = chatServer(createAgent({ model: scriptedModel(...answers) }), { store });
    servers.push(server);
    const transport = new DefaultChatTransport<UIMessage>({
      api: 'http://localhost/api/chat',
      fetch: (input, init) => server.respond(new Request(String(input), init)),
    });
    const ask = async (id: string) =>
      readStream(
        await transport.sendMessages({
          trigger: 'submit-message',
          chatId: 'a',
          messageId: undefined,
          abortSignal: undefined,
          messages: [{ id, role: 'user', parts: [{ type: 'text', text: id }] }],
        }),
      );
    return { server, ask };
  };
  const stored = async () => {
    const [found] = await lastValueFrom(sessions.find$());
    return (await lastValueFrom(sessions.load$(found?.id ?? '')))?.state as SessionState;
  };
  /** The state with these words, once it is saved. */
  const storedWith = (words: string): Promise<SessionState> =>
    firstValueFrom(
      saved$.pipe(
        startWith(undefined),
        concatMap(stored),
        first((state) => JSON.stringify(state).includes(words)),
      ),
    );
  return { start, storedWith };
};

/** An answer that comes when it is let, and when it is asked for. */
const later = () => {
  const answer$ = new Subject<ModelChunk>();
  const asked$ = new ReplaySubject<void>(1);
  const come = (said: string): void => {
    [text(said), finish()].forEach((chunk) => answer$.next(chunk));
    answer$.complete();
  };
  const answer: ScriptedAnswer = () => {
    asked$.next();
    return answer$;
  };
  return { answer, asked: () => firstValueFrom(asked$), come };
};

describe('S6: two servers that answer one conversation', () => {
  it('keep the call whose save came second, on a branch from its beginning', async () => {
    const { start, storedWith } = place();
    const slow = later();
    const [one, two] = [start(slow.answer, [text('Again.')]), start([text('Fast.')])];
    const lost = one.ask('Pay.');
    await slow.asked();
    expect(answerIn((await two.ask('Weather?')).message)).toBe('Fast.');
    slow.come('Paid.');
    expect((await lost).errors).toEqual([
      'Error: Your request was completed, but the conversation was changed elsewhere meanwhile. Load it again.',
    ]);
    const { messages, branches = [] } = await storedWith('Paid.');
    expect(messages.map(textOf)).toEqual(['Weather?', 'Fast.']);
    expect(branches.map(({ message }) => textOf(message))).toEqual(['Pay.', 'Paid.']);
  });
});
