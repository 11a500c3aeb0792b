import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  EMPTY,
  lastValueFrom,
  NEVER,
  of,
  onErrorResumeNextWith,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import { createAgent, MillraceError, type Model, userMessages } from '../../index.js';
import { guardInput } from '../guards/index.js';
import { sessions } from '../sessions/index.js';
import { layerContract, marbles, scriptedModel, text } from '../../testing/index.js';

const failing = (error: MillraceError): Model => ({
  name: 'down',
  stream$: () => throwError(() => error),
});
const german = { auth: 'Das ging nicht.', busy: 'Bitte warten.' };
const errorOf = (model: Model, use = [userMessages(german)]) =>
  createAgent({ model, use })
    .call('?')
    .catch((thrown: unknown) => thrown);

describe('userMessages', () => {
  it('C7: replaces the message of a code, in the error and its event, and nothing else', async () => {
    const error = new MillraceError('auth', 'Bad key.', { status: 401, cause: 'x' });
    const agent = createAgent({ model: failing(error), use: [userMessages(german)] });
    const thrown: unknown = await agent.call('?').catch((it: unknown) => it);
    expect(thrown).toMatchObject({
      ...{ code: 'auth', message: 'Bad key.', status: 401, cause: 'x' },
      userMessage: 'Das ging nicht.',
    });
    const events = await lastValueFrom(
      agent.stream$('?').pipe(onErrorResumeNextWith(EMPTY), toArray()),
    );
    expect(events.at(-1)).toMatchObject({
      type: 'error',
      error: { userMessage: 'Das ging nicht.' },
    });
  });

  it('C7: keeps those of other codes, and those that an error has of its own', async () => {
    const server = new MillraceError('invalidRequest', 'No.');
    expect(await errorOf(failing(server))).toMatchObject({ userMessage: server.userMessage });
    const guard = guardInput(() => false, { userMessage: 'Say please.' });
    const layers = [userMessages({ guardRejected: 'Nein.' })];
    const agent = createAgent({ model: scriptedModel([text('x')]), use: [...layers, guard] });
    await expect(agent.call('?')).rejects.toMatchObject({ userMessage: 'Say please.' });
  });

  it('C7: a function gets the error', async () => {
    const mine = userMessages(({ code, status = 0 }) => (status === 401 ? `${code}!` : undefined));
    const error = new MillraceError('auth', 'x', { status: 401 });
    expect(await errorOf(failing(error), [mine])).toMatchObject({ userMessage: 'auth!' });
    const other = new MillraceError('auth', 'x');
    expect(await errorOf(failing(other), [mine])).toMatchObject({ userMessage: other.userMessage });
  });

  it('C7: covers a session that is busy', async () => {
    const agent = createAgent({
      model: { name: 'm', stream$: () => NEVER },
      use: [userMessages(german)],
    });
    const session = sessions(agent, { onBusy: 'reject' }).open('s');
    const first = session.call$('?').subscribe({ error: () => undefined });
    await expect(session.call('?')).rejects.toMatchObject({
      code: 'busy',
      userMessage: 'Bitte warten.',
    });
    first.unsubscribe();
  });

  it('C7, C5: covers a call that takes too long, and one that is aborted', () => {
    const use = [userMessages({ timeout: 'Zu langsam.', aborted: 'Beendet.' })];
    const agent = createAgent({ model: { name: 'm', stream$: () => NEVER }, use });
    marbles(({ expectObservable, scheduler }) => {
      const options = { scheduler, limits: { timeouts: { callMs: 10 } } };
      const controller = new AbortController();
      timer(5, scheduler).subscribe(() => controller.abort());
      const messageOf = catchError(({ userMessage }: MillraceError) => of(userMessage));
      expectObservable(agent.call$('?', options).pipe(messageOf)).toBe('10ms (x|)', {
        x: 'Zu langsam.',
      });
      expectObservable(
        agent.call$('?', { ...options, signal: controller.signal }).pipe(messageOf),
      ).toBe('5ms (x|)', { x: 'Beendet.' });
    });
  });

  it('C7: covers a call whose caller leaves, for those who listen to the agent', () => {
    const use = [userMessages({ aborted: 'Beendet.' })];
    const agent = createAgent({ model: { name: 'm', stream$: () => NEVER }, use });
    const said: unknown[] = [];
    const listening = agent.events$.subscribe((event) => {
      if (event.type === 'error') said.push(event.error.userMessage);
    });
    agent.call$('?').subscribe().unsubscribe();
    listening.unsubscribe();
    expect(said).toEqual(['Beendet.']);
  });

  it('C7: the inner of two comes first, and a function that fails fails the call', async () => {
    const inner = userMessages(({ userMessage }) => `(${userMessage})`);
    const outer = userMessages(({ userMessage }) => `[${userMessage}]`);
    const error = new MillraceError('auth', 'x', { userMessage: 'y' });
    expect(await errorOf(failing(error), [outer, inner])).toMatchObject({ userMessage: '[(y)]' });
    const broken = userMessages(() => {
      throw new TypeError('no');
    });
    expect(await errorOf(failing(error), [broken])).toMatchObject({ code: 'unknown' });
    const wrong = userMessages((() => 1) as never);
    expect(await errorOf(failing(error), [wrong])).toMatchObject({ code: 'config' });
  });

  it('C7: names a code that does not exist', () => {
    expect(() => userMessages({ rateLimit: 'x' } as never)).toThrow("Did you mean 'rateLimited'?");
  });

  it.each(layerContract(() => userMessages(german)))(
    'C7: keeps to the contract: $name',
    ({ run }) => run(),
  );
});
